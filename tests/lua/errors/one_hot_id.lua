-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
orrery.func(function(labels) return labels:one_hot(3) end)({ 1, 2, 3 }) -- 1-based
--> one_hot_id.lua:3: gather: index 3 in row 2 is outside the 3 rows of the table (0..2) [kernel 'cpu', launch]
