-- SPDX-License-Identifier: Apache-2.0
local nn = require "orrery".nn
local Net = nn.module("Net", function(m)
  m.first = nn.linear(1, 1)
  return function(x) return m.frist(x) end
end)
print(Net().frist)
--> part.lua:7: Net has no part 'frist' (did you mean 'first'?)
