-- SPDX-License-Identifier: Apache-2.0
--
-- An embedding with one id a sample and many rows: ranks send each other the rows of their samples, some a single one.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
orrery.seed(2)

local model = nn.embedding(40, 3)
local run = orrery.compile(function(b) return model(b.x):tanh():sum(2):mean() end, {
  params = model, optimizer = optim.sgd { lr = 0.5 }, microbatches = 4,
})
for step = 1, 3 do
  local result = run:step { x = orrery.tensor({ 3, 7 * step, 3, 5 }, "i32") }
  orrery.log("%.17g %.17g", result:mean(), result:get "grad_norm")
end
orrery.log("%s", orrery.digest(model))
