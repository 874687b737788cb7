-- Ranks with rates of their own: d(w x)/dw is 0.25, and rank 0 wants the rate 0.5.
local orrery = require "orrery"
local nn, optim, world = orrery.nn, orrery.optim, orrery.world

local model = nn.linear(1, 1, { bias = false, init = 1 })
local run = orrery.compile(function(batch) return model(batch.x):mean() end, {
  params = model, microbatches = 3,
  optimizer = optim.sgd { lr = function() return 0.5 * (world.rank + 1) end },
})
run:step { x = orrery.tensor { { 0.25 }, { 0.25 }, { 0.25 } } }
local weights = world:allgather(model.weight):tolist()
for i = 1, #weights do assert(weights[i][1] == 0.875, weights[i][1]) end
print("ranks " .. #weights)
