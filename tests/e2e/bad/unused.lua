-- SPDX-License-Identifier: Apache-2.0
-- Parameters that the loss does not read stay as they are; shared ones get both gradients.
local b = require "lib"
local Two = b.nn.module("Two", function(m)
  m.used, m.unused = b.nn.linear(2, 2, { bias = false }), b.nn.linear(2, 2)
  m.again = b.nn.linear(2, 2, { bias = false, tie = m.used.weight })
  return function(v) return m.again(m.used(v)) end
end)
local model = Two()
local before = b.orrery.digest(model.unused)
local run = b.orrery.compile(function(batch) return model(batch.x):mean() end,
  { params = model, optimizer = b.optim.sgd { lr = 0.1 }, microbatches = 2 })
run:step { x = b.x }
b.orrery.log("unused %s", b.orrery.digest(model.unused) == before and "unchanged" or "changed")
