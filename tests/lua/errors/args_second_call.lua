-- SPDX-License-Identifier: Apache-2.0
-- An argument that no call has declared is refused before anything is compiled.
local orrery = require "orrery"
orrery.args { steps = 100 }
orrery.args { dim = 8 }
orrery.compile(function() orrery.fail "compiled" end, {})
--! dmi=4
--= 2
--> args_second_call.lua:4: argument 'dmi' is unknown (did you mean 'dim'?); the script takes dim, steps
