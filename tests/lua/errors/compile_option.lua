-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
orrery.compile(function() end, { params = {}, optimzer = 1 })
--> compile_option.lua:3: compile: unknown option 'optimzer' (did you mean 'optimizer'?)
