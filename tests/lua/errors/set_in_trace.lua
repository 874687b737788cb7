-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local rate = orrery.input("rate", 1.0)
orrery.func(function(x)
  rate:set(rate.value * 0.5)
  return x * rate
end)(1.0)
--> set_in_trace.lua:5: Scalar:set in a traced function would happen when that is traced, not in every step: call it before the step
