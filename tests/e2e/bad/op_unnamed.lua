-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
orrery.op { -- here
  name = "scaled", options = { 2.0 },
  shape = function(_, x) return x end, forward = function(o, x) return x * o[1] end,
}
