-- SPDX-License-Identifier: Apache-2.0
--
-- A step of a language model on token ids, as all layouts here train: AdamW, clipped gradients, sums added up in place.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

-- a: batch, microbatch (samples), ctx (tokens of a sample).
return function(model, a, stack)
  local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
    params = model, microbatches = a.batch // a.microbatch, clip = 1, strategy = stack, reduce = "fast",
    optimizer = optim.adamw { lr = 1e-4, decay = 0.1 },
  })
  local ids = orrery.func(function() return orrery.zeros({ a.batch, a.ctx }, "i32") end)()
  local data = orrery.data.arrays { x = ids, y = ids }
  for _, batch in data:batches { size = a.batch, steps = 1 } do run:step(batch) end
end
