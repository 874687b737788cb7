-- SPDX-License-Identifier: Apache-2.0
--
-- Evaluates a model whose experts have a loss that nobody reads, in a later stage than the first that takes a mean over
-- the batch; the model's own loss divides by other weights than such means do.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { pipe = 1 }
orrery.seed(1)

local Model = nn.module("Model", function(m)
  m.average = orrery.buffer({}, { dtype = "f32" })
  m.first, m.second = nn.linear(2, 8), nn.linear(8, 4)
  m.experts = nn.switch(4, { experts = 4, hidden = 2, z = 0.05 })
  return function(batch)
    local x = m.first(batch.x)
    m.average:update(m.average * 0.75 + x:mean():stop_gradient() * 0.25)
    local y = m.second(x)
    m.experts(y)
    return nn.cross_entropy(y, batch.y, { weights = batch.w })
  end
end)
local stages = { { "first" }, { "second", "experts" } }
local model = Model()
local run = orrery.compile(model, {
  params = model, optimizer = optim.sgd { lr = 0.1 }, microbatches = 2,
  strategy = { strategy.pipeline { size = args.pipe, stages = args.pipe > 1 and stages or "auto" } },
})
local x, y, w = {}, {}, {}
for i = 1, 4 do
  x[i], y[i], w[i] = {}, {}, { 1.0, 0.5, 2.0 }
  for j = 1, 3 do x[i][j], y[i][j] = { math.sin(i * j), math.cos(i + j) }, (i * j) % 4 end
end
local batch = { x = orrery.tensor(x), y = orrery.tensor(y, "i32"), w = orrery.tensor(w) }
orrery.log("step %.6f", run:step(batch):mean())
orrery.log("eval %.6f", run:eval(batch):mean())
