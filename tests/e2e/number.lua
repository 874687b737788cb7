-- SPDX-License-Identifier: Apache-2.0
--
-- Trains a parameter without dims that every place reads: each rank of strategy.context has a summand of its gradient.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy

local Shift = nn.module("Shift", function(m)
  m.by = nn.parameter({}, { init = nn.init.constant(0.5) })
  return function(x) return (x + m.by):tanh():sum { 2, 3 } end
end)
local model = Shift()
local run = orrery.compile(function(b) return model(b.x):mean() end, {
  params = model, optimizer = optim.sgd { lr = 0.1 }, clip = 1, strategy = strategy.context {},
})
local x = {}
for i = 1, 2 do
  x[i] = {}
  for t = 1, 4 do x[i][t] = { math.sin(i + 3 * t), math.cos(2 * i - t) } end
end
for _ = 1, 3 do
  local result = run:step { x = orrery.tensor(x) }
  orrery.log("%.6f %.6f", result:mean(), result:get "grad_norm")
end
orrery.log("%.6f", model.by:read():item())
