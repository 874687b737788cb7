-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local cfg = { k = 2 }
local twice = orrery.func(function(x) return x * cfg.k end)
twice { 1.5 }
cfg.k = 3
twice { 1.5 }
--> stale_func.lua:7: 'cfg.k' of the function at stale_func.lua:4 was 2 when the step was traced and is 3 now; a trace keeps the first value: make it an orrery.input, or compile again
