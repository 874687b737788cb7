-- SPDX-License-Identifier: Apache-2.0
local b = require "lib"
if b.orrery.world.rank == 0 then
  b.orrery.world:allreduce(b.x)
else
  b.orrery.world:barrier() -- here
end
