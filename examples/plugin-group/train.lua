-- SPDX-License-Identifier: Apache-2.0
--
-- Trains a model of rmsnorms and products; prints the parameters' digest, which is the same with the plugin and
-- without it, on any number of ranks.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { stack = "data" }

local stacks = {
  data = { strategy.data {} },
  zero = { strategy.data {}, strategy.zero { stage = 3 } },
  accumulate = { strategy.data {}, strategy.accumulate {} },
  pipeline = { strategy.pipeline {}, strategy.data {} },
}
local Block = nn.module("Block", function(m, width)
  m.norm, m.up = nn.rmsnorm(width), nn.linear(width, 3 * width, { bias = false })
  m.down = nn.linear(3 * width, width, { bias = false })
  return function(x) return x + m.down(m.up(m.norm(x)):tanh()) end
end)

orrery.seed(1)
local model = nn.sequential { Block(24), Block(24), nn.rmsnorm(24), nn.linear(24, 4, { bias = false }) }
local x, y = {}, {}
for i = 1, 12 do
  x[i], y[i] = {}, i % 4
  for j = 1, 24 do x[i][j] = math.sin(i * j) end
end
local data = orrery.data.arrays { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "i32") }
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
  params = model, optimizer = optim.adam { lr = 0.01 }, microbatches = 4, strategy = stacks[args.stack],
})
for step, batch in data:batches { size = 12, steps = 5 } do
  orrery.log("step %d loss %.6f", step, run:step(batch):mean())
end
orrery.log("digest %s", orrery.digest(model))
