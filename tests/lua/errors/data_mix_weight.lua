-- SPDX-License-Identifier: Apache-2.0
local data = require "orrery".data
data.mix({ data.arrays { x = { 1 } } }, { -1 })
--> data_mix_weight.lua:3: mix: weight 1 is -1: every weight is a number above 0
