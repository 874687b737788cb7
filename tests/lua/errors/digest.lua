-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local weight = orrery.parameter { 2 }
orrery.digest { weight, weight:read() }
--> digest.lua:4: HostTensor given as '2', expected a parameter, a buffer or a module
