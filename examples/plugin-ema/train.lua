-- SPDX-License-Identifier: Apache-2.0
--
-- Trains with the plugin's op; prints what the op makes of a row, and the parameters' digest, which is one on any
-- number of ranks.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy

local f = orrery.func(function(x)
  local y = orrery.ops.ema(x, { keep = 0.5 })
  return y
end)
local row = f(orrery.tensor({ { 4.0, 0.0, 8.0 } }, "f32")):tolist()[1]
orrery.log("ema %g %g %g", row[1], row[2], row[3])

orrery.seed(1)
local model = { a = nn.linear(3, 8), b = nn.linear(8, 1) }
local x, y = {}, {}
for i = 1, 10 do
  x[i], y[i] = { math.sin(i), math.cos(i), math.sin(2 * i) }, { math.cos(3 * i) }
end
local data = orrery.data.arrays { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "f32") }
local run = orrery.compile(function(b)
  local made = model.b(orrery.ops.ema(model.a(b.x):tanh(), { keep = 0.8 }):tanh())
  local slope = orrery.grad(made:sum(), { b.x })[1]
  return nn.mse(made, b.y) + 0.1 * (slope * slope):mean()
end, {
  params = model, optimizer = optim.adam { lr = 0.01 }, microbatches = 4, strategy = strategy.data {},
})
for step, batch in data:batches { size = 10, steps = 5 } do
  orrery.log("step %d loss %.6f", step, run:step(batch):mean())
end
orrery.log("digest %s", orrery.digest(model))
