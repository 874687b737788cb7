-- SPDX-License-Identifier: Apache-2.0
local data = require "orrery".data
for _ in data.from(function() return function() end end):batches { size = 1 } do end
--> stream_empty.lua:3: data.from: the stream ends before its first sample
