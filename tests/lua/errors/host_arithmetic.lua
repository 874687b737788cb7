-- SPDX-License-Identifier: Apache-2.0
local t = require "orrery".tensor { 1.5 }
print(1 < t + 1)
--> host_arithmetic.lua:3: Lua turns the result of < and > into true or false; write a:lt(b), a:gt(b)
