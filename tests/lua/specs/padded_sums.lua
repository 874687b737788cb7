-- SPDX-License-Identifier: Apache-2.0
--
-- A loss that holds the slope of chosen matrices, a sum over the batch: samples that pad the last microbatch do not
-- count in it, so that the loss is the same in any number of microbatches.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local x, index = {}, {}
for i = 1, 7 do x[i], index[i] = { math.sin(i), math.cos(i), 1 }, i % 3 end
local batch = { x = orrery.tensor(x, "f64"), index = orrery.tensor(index, "i64") }

local function losses(microbatches)
  local w = nn.parameter({ 3, 3, 2 }, { dtype = "f64", init = nn.init.constant(0.3) })
  local run = orrery.compile(function(b)
    local y = b.x:gather_matmul(w, b.index):tanh()
    local slope = orrery.grad(y:sum(), { w })[1]
    return y:mean() + 0.1 * (slope * slope):sum()
  end, { params = { w = w }, optimizer = optim.sgd { lr = 0.1 }, microbatches = microbatches })
  local found = {}
  for step = 1, 2 do found[step] = run:step(batch):mean() end
  return found
end

local one = losses(1)
for _, microbatches in ipairs { 2, 3, 5, 7 } do
  for step, loss in ipairs(losses(microbatches)) do
    assert(math.abs(loss - one[step]) < 1e-12, ("%d microbatches: step %d %.15g, not %.15g"):format(microbatches, step,
      loss, one[step]))
  end
end
