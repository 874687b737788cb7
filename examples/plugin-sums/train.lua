-- SPDX-License-Identifier: Apache-2.0
--
-- Trains a layer of the plugin's op; prints the losses, and the parameters' digest, which is one on any number of ranks.
-- With wide=true all is in f64; known=true asks for what the core's own ops make;
-- with microbatches=5 the last one is padded.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { width = 100, known = false, wide = false, stack = "data", microbatches = 6 }
local dtype = args.wide and "f64" or "f32"

local Layer = nn.module("Layer", function(m)
  m.scale = nn.parameter({ args.width }, { dtype = dtype, init = nn.init.ones })
  m.shift = nn.parameter({ args.width }, { dtype = dtype, init = nn.init.zeros })
  return function(x)
    if args.known then return x * m.scale + m.shift end
    return orrery.ops.scale_shift(x, m.scale, m.shift)
  end
end)

orrery.seed(1)
local model = { a = nn.linear(3, args.width, { dtype = dtype }), layer = Layer(), b = nn.linear(args.width, 1, { dtype = dtype }) }
local x, y = {}, {}
for i = 1, 12 do
  x[i], y[i] = { math.sin(i), math.cos(i), math.sin(2 * i) }, { math.cos(3 * i) }
end
local data = orrery.data.arrays { x = orrery.tensor(x, dtype), y = orrery.tensor(y, dtype) }
local stacks = {
  data = { strategy.data {} },
  one_by_one = { strategy.data {}, strategy.accumulate {} },
  zero = { strategy.data {}, strategy.zero { stage = 3 } },
  recompute = { strategy.data {}, strategy.recompute { path = "" } },
}
local run = orrery.compile(function(b) return nn.mse(model.b(model.layer(model.a(b.x):tanh())), b.y) end, {
  params = model, optimizer = optim.sgd { lr = 0.05 }, microbatches = args.microbatches, strategy = stacks[args.stack],
})
for step, batch in data:batches { size = 12, steps = 5 } do
  orrery.log("step %d loss %.12f", step, run:step(batch):mean())
end
orrery.log("digest %s", orrery.digest(model))
