-- SPDX-License-Identifier: Apache-2.0
local b = require "lib"
local run = b.orrery.compile(function(batch) -- here
  return b.nn.cross_entropy(b.model(batch.x), batch.y) * (0 / 0)
end, { params = b.model, optimizer = b.optim.sgd { lr = 0.1 } })
run:step { x = b.x, y = b.y }
