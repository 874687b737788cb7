-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local sums = orrery.func(function(x)
  return orrery.scan(function(s, x_t) return s and s + x_t or x_t end, nil, x)
end)
sums { { 1, 2, 3 } }
--> scan_result.lua:4: scan: step returned nil, expected the next state and a tensor
