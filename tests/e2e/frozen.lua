-- SPDX-License-Identifier: Apache-2.0
-- Freezes and thaws the weights of a model between steps, also those of a batch of another size. Prints two of
-- them after each step.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy

local args = orrery.args { stack = { "data", "zero1", "zero2", "zero3", "place", "pipeline", "average", "stale" } }
local stacks = {
  data = { strategy.data {} }, place = { strategy.place { modules = { { "one" }, { "two" } } } },
  pipeline = { strategy.pipeline {} }, average = { strategy.average {} }, stale = { strategy.server { mode = "stale" } },
}
for stage = 1, 3 do stacks["zero" .. stage] = { strategy.data {}, strategy.zero { stage = stage } } end

local Net = nn.module("net", function(m)
  m.a, m.b, m.c = nn.parameter { 2 }, nn.parameter {}, nn.parameter {}
  m.one, m.two = nn.freeze(nn.linear(1, 1)), nn.freeze(nn.linear(1, 1))
  return function(batch)
    return (batch.x * (m.a:sum() + m.b * 2 + m.c) + m.two(m.one(batch.x:reshape(-1, 1))):reshape(-1)):mean()
  end
end)
local net = Net()
net.a:freeze()
net.c:freeze()
local run = orrery.compile(net, {
  params = net, microbatches = 2, optimizer = optim.momentum { lr = 1, momentum = 0.5 }, strategy = stacks[args.stack],
})
local large, small = orrery.tensor({ 1, 2, 3, 6 }, "f32"), orrery.tensor({ 2, 4 }, "f32")
for step, x in ipairs { large, large, small, large, small, large } do
  if step == 2 then nn.freeze({ net.a, net.c }, false) end
  if step == 4 then net.b:freeze() end
  if step == 6 then net.b:freeze(false) end
  run:step { x = x }
  assert(net.c:read():item() == net.a:read():tolist()[2])
  orrery.log("weights %g %g", net.a:read():tolist()[2], net.b:read():item())
end
