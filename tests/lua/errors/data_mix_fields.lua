-- SPDX-License-Identifier: Apache-2.0
local data = require "orrery".data
data.mix({ data.arrays { x = { 1 } }, data.arrays { x = { 1.5 } } }, { 1, 1 })
--> data_mix_fields.lua:3: part 1 has x i64[], part 2 has x f32[]: datasets that are joined have the same fields
