-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
orrery.args { steps = 100, dim = 8 }
orrery.args { dim = 8 }
--> args_declared_twice.lua:4: args: 'dim' is declared at args_declared_twice.lua:3 already; an argument belongs to one call
