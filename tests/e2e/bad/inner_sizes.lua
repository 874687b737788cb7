-- SPDX-License-Identifier: Apache-2.0
local b = require "lib"
local run = b.orrery.compile(function(batch)
  return batch.x:matmul(batch.x):mean() -- here
end, { params = b.model, optimizer = b.optim.sgd { lr = 0.1 } })
run:step { x = b.x }
