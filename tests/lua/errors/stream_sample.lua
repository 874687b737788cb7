-- SPDX-License-Identifier: Apache-2.0
local data = require "orrery".data
for _ in data.from(function() return function() return 1 end end):batches { size = 1 } do end
--> stream_sample.lua:3: data.from: a sample is number, expected a table {field = value}
