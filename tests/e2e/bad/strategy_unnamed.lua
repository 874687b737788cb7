-- SPDX-License-Identifier: Apache-2.0
local b = require "lib"
local strategy = b.orrery.strategy
local run = b.orrery.compile(function(batch) return b.model(batch.x):mean() end, {
  params = b.model, optimizer = b.optim.sgd { lr = 0.1 },
  strategy = { strategy.data {}, strategy.zero { 3 } }, -- here
})
run:step { x = b.x }
