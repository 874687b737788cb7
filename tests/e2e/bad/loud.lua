-- SPDX-License-Identifier: Apache-2.0
-- Every rank prints 40 lines of 100 bytes a step, numbered.
local b = require "lib"
local args = b.orrery.args { steps = 10 }
local run = b.orrery.compile(function(batch)
  return b.nn.cross_entropy(b.model(batch.x), batch.y)
end, { params = b.model, optimizer = b.optim.sgd { lr = 0.001 }, microbatches = 4 })
local n = 0
while run.steps < args.steps do
  run:step { x = b.x, y = b.y }
  for _ = 1, 40 do
    n = n + 1
    io.stdout:write(("%-99d\n"):format(n))
  end
  io.stdout:flush()
end
