-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local f = orrery.func(function(x)
  local y = x
  if x:abs() == 0 then y = x + 1 end
  return y
end)
f { 1.5 }
--> condition_result.lua:5: nothing uses the tensor that 'abs' gives here: Lua's if, and, or, not and == cannot ask it, as it has no numbers while the function is traced; choose with orrery.where(condition, a, b)
