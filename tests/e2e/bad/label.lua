-- SPDX-License-Identifier: Apache-2.0
local b = require "lib"
local run = b.orrery.compile(function(batch)
  return b.nn.cross_entropy(b.model(batch.x), batch.y) -- here
end, { params = b.model, optimizer = b.optim.sgd { lr = 0.1 }, microbatches = 2 })
run:step { x = b.x, y = b.orrery.tensor({ 0, 1, 2, 0, 1, 2, 3, 0 }, "i32") }
