-- SPDX-License-Identifier: Apache-2.0
-- Rank 0 computes alone for so many seconds, before the world forms and after.
local orrery = require "orrery"
local seconds = orrery.args { seconds = 1 }.seconds
local world = orrery.world
for step = 1, 2 do
  local till = os.time() + seconds
  while world.rank == 0 and os.time() < till do end -- here
  world:barrier()
end
orrery.log("together")
