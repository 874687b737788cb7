-- SPDX-License-Identifier: Apache-2.0
-- Trains and saves until somebody ends it, so that it is hit at anything that a job does.
local b = require "lib"
local save = b.orrery.args { save = "" }.save
local run = b.orrery.compile(function(batch)
  return b.nn.cross_entropy(b.model(batch.x), batch.y)
end, { params = b.model, optimizer = b.optim.sgd { lr = 0.001 }, microbatches = 4 })
io.open(save .. ".begun", "a"):write("."):close()
while true do
  run:step { x = b.x, y = b.y }
  if run.steps % 10 == 0 then run:save(save) end
end
