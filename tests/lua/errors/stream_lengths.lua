-- SPDX-License-Identifier: Apache-2.0
local data = require "orrery".data
data.from(function() end, { lengths = { 4 } })
--> stream_lengths.lua:3: data.from: lengths needs pad, which says what fields are filled up with: pad = {x = 0}
