-- SPDX-License-Identifier: Apache-2.0
local b = require "lib"
local scale = 1
local run = b.orrery.compile(function(batch)
  return b.nn.cross_entropy(b.model(batch.x) * scale, batch.y)
end, { params = b.model, optimizer = b.optim.sgd { lr = 0.1 } })
run:step { x = b.x, y = b.y }
scale = 2
run:step { x = b.x, y = b.y } -- here
