-- SPDX-License-Identifier: Apache-2.0
--
-- Fits a line to noisy points: the smallest whole training script.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { steps = 200, batch = 64, microbatches = 16, seed = 1 }
orrery.seed(args.seed)

local x, y = {}, {}
for i = 1, 256 do
  x[i] = { math.random() * 2 - 1 }
  y[i] = { 3 * x[i][1] + 0.5 + 0.1 * (math.random() - 0.5) }
end
local data = orrery.data.arrays { x = x, y = y }

local model = nn.linear(1, 1)
local run = orrery.compile(function(batch) return nn.mse(model(batch.x), batch.y) end, {
  params = model, optimizer = optim.sgd { lr = 0.1 },
  microbatches = args.microbatches, strategy = strategy.data {},
})

run:fit { data = data, size = args.batch, steps = args.steps, log = 50 }
orrery.log("y = %.3f x + %.3f", model.weight:read():item(), model.bias:read():item())
orrery.log("digest %s", orrery.digest(model))
