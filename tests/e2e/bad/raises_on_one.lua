-- SPDX-License-Identifier: Apache-2.0
local b = require "lib"
if b.orrery.world.rank == 1 then error("the disk is made of cheese") end -- here
b.orrery.world:barrier()
