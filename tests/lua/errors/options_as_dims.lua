-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
orrery.func(function(x) return x:var { correction = 0 } end)(orrery.tensor { 1.0, 2.0 })
--> options_as_dims.lua:3: Tensor:var: dims is a table with the key 'correction', expected an integer or a list of integers; options come after it: x:var(nil, { correction = ... })
