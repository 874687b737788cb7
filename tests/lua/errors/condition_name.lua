-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local limit, rounds = 3, 0
local f = orrery.func(function(x)
  local y = x * 2
  while limit ~= y and rounds < 9 do y, rounds = y + 1, rounds + 1 end
  return y
end)
f { 1.5 }
--> condition_name.lua:6: 'limit ~= y' is always true: it compares a Tensor itself, which has no numbers while the function is traced; write y:ne(limit) and choose with orrery.where(condition, a, b)
