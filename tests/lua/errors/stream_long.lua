-- SPDX-License-Identifier: Apache-2.0
local data = require "orrery".data
for _ in data.from(function() return function() return { x = { 1, 2 } } end end, { pad = { x = 0 }, lengths = { 1 } }):batches { size = 1 } do end
--> stream_long.lua:3: data.from: a sample has the length 2, the largest of lengths is 1: leave it out or cut it
