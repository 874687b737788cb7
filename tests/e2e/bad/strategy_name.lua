-- SPDX-License-Identifier: Apache-2.0
local b = require "lib"
b.orrery.compile(function(batch) return batch.x:mean() end, {
  params = b.model, optimizer = b.optim.sgd { lr = 0.1 },
  strategy = b.strategy.dtaa {}, -- here
})
