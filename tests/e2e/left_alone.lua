-- SPDX-License-Identifier: Apache-2.0
--
-- A model some of whose parameters the loss reads for batches of six samples only; how=frozen freezes them in the other
-- steps, which must be the same. how=never: it never reads them. Prints a digest after each step.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { how = { "unread", "frozen", "never" }, stack = "strategy.data {}", kind = "adamw" }
orrery.seed(3)

local Net = nn.module("net", function(m)
  m.first, m.second = nn.linear(3, 2048), nn.linear(2048, 1)
  m.side, m.more = nn.linear(3, 2048), nn.linear(2, 2)
  return function(batch)
    local x = m.first(batch.x)
    if batch.x.shape[1] == 6 and args.how ~= "never" then x = x + m.side(batch.x) end
    return m.second(x):mean()
  end
end)
local net = Net()
nn.freeze(net.more, args.how ~= "never")
local run = orrery.compile(net, {
  params = net, optimizer = optim[args.kind] { lr = 0.01, decay = 0.1 }, microbatches = 2, clip = 1,
  strategy = load("local strategy = ...; return {" .. args.stack .. "}")(strategy),
})
for step, n in ipairs { 4, 6, 4, 4, 6 } do
  if args.how == "frozen" then nn.freeze(net.side, n ~= 6) end
  local x = {}
  for i = 1, n do x[i] = { math.sin(i * step), math.cos(i + step), i / n } end
  run:step { x = orrery.tensor(x, "f32") }
  orrery.log("step %d %s %s", step, orrery.digest(net), orrery.digest(net.side))
end
