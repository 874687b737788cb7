-- SPDX-License-Identifier: Apache-2.0
local b = require "lib"
b.orrery.world:barrier() -- the ranks have met
if b.orrery.world.rank == 1 then os.exit(0) end
b.orrery.world:barrier() -- here
