-- SPDX-License-Identifier: Apache-2.0
--
-- Numbers that change nothing are no fault: the first function is called.
local orrery = require "orrery"
local steady = orrery.func(function(x)
  if math.random() < 2 then x = x + 1 end
  return x
end)
assert(steady(orrery.tensor { 1.5 }):tolist()[1] == 2.5)
local shaky = orrery.func(function(x)
  return x * math.random()
end)
shaky(orrery.tensor { 1.5 })
--> random_in_function.lua:11: mul: this function is not traced to the same program as before, which is what runs: give what changes from step to step in the batch or as an orrery.input, and draw random numbers with orrery.uniform
