-- SPDX-License-Identifier: Apache-2.0
--
-- Rank 1 gives batches of another size: from the first step on, or later, when it has had such a batch (`known`) or not.
local b = require "lib"
local args = b.orrery.args { before = 0, known = false, eval = false }
local run = b.orrery.compile(function(batch) -- here
  return b.nn.cross_entropy(b.model(batch.x), batch.y)
end, { params = b.model, optimizer = b.optim.sgd { lr = 0.1 }, microbatches = 2 })
local function batch(rows)
  local x, y = {}, {}
  for i = 1, rows do x[i], y[i] = { i, 0.5 }, i % 3 end
  return { x = b.orrery.tensor(x, "f32"), y = b.orrery.tensor(y, "i32") }
end
for _ = 1, args.before do run:step(batch(2)) end
if args.known then run:step(batch(3)) end
local given = batch(b.orrery.world.rank == 1 and 3 or 2)
if args.eval then run:eval(given) else run:step(given) end
