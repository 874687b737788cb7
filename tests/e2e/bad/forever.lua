-- SPDX-License-Identifier: Apache-2.0
-- Trains until somebody ends it; says once that it is under way.
local b = require "lib"
local run = b.orrery.compile(function(batch) -- here
  return b.nn.cross_entropy(b.model(batch.x), batch.y)
end, { params = b.model, optimizer = b.optim.sgd { lr = 0.1 }, microbatches = 4 })
run:step { x = b.x, y = b.y }
b.orrery.log("under way")
while true do run:step { x = b.x, y = b.y } end
