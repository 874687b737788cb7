-- SPDX-License-Identifier: Apache-2.0
-- After three steps rank 1 calls another collective than the others.
local b = require "lib"
local world = b.orrery.world
local run = b.orrery.compile(function(batch)
  return b.nn.cross_entropy(b.model(batch.x), batch.y)
end, { params = b.model, optimizer = b.optim.sgd { lr = 0.1 }, microbatches = 4 })
for _ = 1, 3 do run:step { x = b.x, y = b.y } end
if world.rank == 1 then
  world:barrier()
else
  world:allreduce(b.x)
end
