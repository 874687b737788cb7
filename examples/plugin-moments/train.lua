-- SPDX-License-Identifier: Apache-2.0
--
-- Trains with the plugin's op, by which rows get mean 0 and variance 1; prints what the op makes of a row, and the
-- parameters' digest, which is one on any number of ranks. Rows of width=5000 get known ops instead of the kernel.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { width = 8 }

local f = orrery.func(function(x)
  local mean, variance = orrery.ops.moments(x)
  return mean, variance
end)
local mean, variance = f(orrery.tensor({ { 1.0, 2.0, 3.0, 6.0 } }, "f32"))
orrery.log("moments %g %g", mean:tolist()[1], variance:tolist()[1])

orrery.seed(1)
local model = { a = nn.linear(3, args.width), b = nn.linear(args.width, 1) }
local x, y = {}, {}
for i = 1, 10 do
  x[i], y[i] = { math.sin(i), math.cos(i), math.sin(2 * i) }, { math.cos(3 * i) }
end
local data = orrery.data.arrays { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "f32") }
local run = orrery.compile(function(b)
  local h = model.a(b.x):tanh()
  local m, v = orrery.ops.moments(h)
  return nn.mse(model.b((h - m:reshape { -1, 1 }) * (v:reshape { -1, 1 } + 1e-5) ^ -0.5), b.y)
end, {
  params = model, optimizer = optim.adam { lr = 0.001 }, microbatches = 4, strategy = strategy.data {},
})
for step, batch in data:batches { size = 10, steps = 5 } do
  orrery.log("step %d loss %.6f", step, run:step(batch):mean())
end
orrery.log("digest %s", orrery.digest(model))
