-- SPDX-License-Identifier: Apache-2.0
--
-- A stack of equal layers, so that the optimizer's state is twice the parameters in equal windows.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { width = 64, layers = 8, steps = 2, batch = 4 }
orrery.seed(1)

local model = nn.sequential(args.layers, function() return nn.linear(args.width, args.width, { bias = false }) end)
local run = orrery.compile(function(b) return (model(b.x) - b.x):pow(2):mean() end, {
  params = model, optimizer = optim.adamw { lr = 1e-3 }, strategy = STACK,
})
local x = {}
for i = 1, args.batch do
  x[i] = {}
  for j = 1, args.width do x[i][j] = (i * 7 + j * 3) % 11 / 11 end
end
x = orrery.tensor(x)
for step = 1, args.steps do
  orrery.log("step %d loss %.17g", step, run:step({ x = x }):mean())
end
