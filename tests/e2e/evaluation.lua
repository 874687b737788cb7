-- SPDX-License-Identifier: Apache-2.0
--
-- Evaluates batches of 1 to 9 samples between steps of a model with dropout and running statistics: prints the loss,
-- and what it is by hand, of the rows that the model gives.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
orrery.seed(1)
local model = nn.sequential { nn.linear(2, 8), nn.batchnorm(8), nn.dropout(0.3), nn.tanh, nn.linear(8, 1) }
local run = orrery.compile(function(b)
  local y = model(b.x)
  return nn.mse(y, b.y), { y = y }
end, { params = model, optimizer = optim.adam { lr = 0.01 }, microbatches = 4, strategy = STACK })
local function batch(n)
  local x, y = {}, {}
  for i = 1, n do x[i], y[i] = { math.sin(i), math.cos(2 * i) }, { i * 0.1 } end
  return { x = x, y = orrery.tensor(y) }
end
for n = 1, 9 do
  run:step(batch(8))
  local b = batch(n)
  local result, sum = run:eval(b), 0
  local made, wanted = result:get("y"):tolist(), b.y:tolist()
  for i = 1, n do sum = sum + (made[i][1] - wanted[i][1]) ^ 2 end
  orrery.log("%d %.9g %.9g", n, result:mean(), sum / n)
end
orrery.log("digest %s", orrery.digest(model))
