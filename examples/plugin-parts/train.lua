-- SPDX-License-Identifier: Apache-2.0
--
-- Trains a classifier whose classes are cut over the ranks (stack=tensor; stack=chunks with the bits of one rank), or not
-- (stack=data); prints the losses, in f64. With known=true the core's own ops make them.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { classes = 10, known = false, stack = "tensor" }

local function linear(inputs, outputs) return nn.linear(inputs, outputs, { dtype = "f64" }) end
local Classifier = nn.module("Classifier", function(m)
  m.body, m.head = linear(3, 8), linear(8, args.classes)
  return function(x) return m.head(m.body(x):tanh()) end
end)

orrery.seed(1)
local model = Classifier()
local x, y = {}, {}
for i = 1, 12 do
  x[i], y[i] = { math.sin(i), math.cos(i), math.sin(2 * i) }, i % args.classes
end
local data = orrery.data.arrays { x = orrery.tensor(x, "f64"), y = orrery.tensor(y, "i32") }
local function logs(logits)
  if not args.known then return orrery.ops.log_softmax(logits), orrery.ops.log_sum_exp(logits) end
  local most = logits:max(-1, { keep = true })
  local sums = most + (logits - most):exp():sum(-1, { keep = true }):log()
  return logits - sums, sums:reshape(-1)
end
local stacks = {
  data = strategy.data {}, tensor = strategy.tensor { column = { "head" } },
  chunks = strategy.tensor { column = { "head" }, chunks = 4 }, -- the bits of one rank
}
local run = orrery.compile(function(b)
  local made, sums = logs(model(b.x))
  local chosen = b.y:one_hot(args.classes, "f64")
  return -(made * chosen):sum(-1):mean() + 1e-2 * (sums * sums):mean()
end, {
  params = model, optimizer = optim.sgd { lr = 0.5 }, microbatches = 6,
  strategy = stacks[args.stack],
})
for step, batch in data:batches { size = 12, steps = 5 } do
  orrery.log("step %d loss %.10f", step, run:step(batch):mean())
end
orrery.log("digest %s", orrery.digest(model))
