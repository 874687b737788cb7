-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
orrery.op {
  name = "minmax", shape = function(_, x) return { x[1] } end, forward = function(_, x) return x:max(2), x:min(2) end,
}
orrery.func(function(x) return orrery.ops.minmax(x) end)(orrery.tensor { { 1.0, 2.0 } })
--> op_second_result.lua:6: ops.minmax: forward returned 2 results, the last of them a Tensor: write results = 2
