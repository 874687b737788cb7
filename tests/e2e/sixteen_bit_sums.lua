-- SPDX-License-Identifier: Apache-2.0
--
-- One step of plain SGD on sums of every kind over a batch of n samples: of a product, its bias, a norm and an embedding.
-- Prints by how much each parameter has moved, which is its mean gradient.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { n = 64, microbatches = 64, reduce = "canonical", stack = "strategy.data {}" }

local Net = nn.module("net", function(m)
  m.line, m.table, m.norm = nn.linear(1, 1), nn.embedding(2, 2), nn.layernorm(2)
  return function(batch)
    local y = m.line(batch.x) + m.norm(batch.pairs):sum(-1, { keep = true })
    return (y + m.table(batch.ids):sum(-1, { keep = true })):mean()
  end
end)
local net = Net()
local parameters = orrery.parameters(net)
for _, p in ipairs(parameters) do
  p:write(orrery.func(function() return orrery.full(p.shape, 0) end)())
end
local run = orrery.compile(net, {
  params = net, optimizer = optim.sgd { lr = 1 }, microbatches = args.microbatches, reduce = args.reduce,
  strategy = load("local strategy = ...; return {" .. args.stack .. "}")(orrery.strategy),
})
local x, pairs_of, ids = {}, {}, {}
for i = 1, args.n do
  x[i], pairs_of[i], ids[i] = { 0.5 + i % 3 * 0.5 }, { 1, -1 }, i % 4 == 0 and 1 or 0
end
local result = run:step { x = orrery.tensor(x, "f32"), pairs = orrery.tensor(pairs_of, "f32"), ids = orrery.tensor(ids, "i32") }
for _, p in ipairs(parameters) do
  local numbers = orrery.func(function(y) return y:reshape(-1) * -1 end)(p:read()):tolist()
  for i, v in ipairs(numbers) do numbers[i] = ("%.9g"):format(v) end
  orrery.log("%s %s", p.name, table.concat(numbers, " "))
end
orrery.log("norm %.9g", result:get "grad_norm")
