-- SPDX-License-Identifier: Apache-2.0
local t = require "orrery".tensor { 1.5 }
print(t + 1)
--> host_arithmetic.lua:3: attempt to perform arithmetic on a HostTensor value (local 't'); take its numbers by :item() or :tolist(), or compute in an orrery.func
