-- SPDX-License-Identifier: Apache-2.0
--
-- What is a list: values at the places 1, 2, ... and nothing else. A nil among them would end it there without a word.
local any_next = require "orrery.globals".next

local M = {}

-- Why a table is no list, in words; nil if it is one.
function M.fault(value)
  local count = rawlen(value)
  for place = 1, count do
    if rawget(value, place) == nil then return ("a list with nothing at place %d"):format(place) end
  end
  for key in any_next, value do
    if math.type(key) ~= "integer" or key < 1 then return ("a table with the key '%s'"):format(tostring(key)) end
    if key > count then return ("a list with nothing at place %d"):format(count + 1) end
  end
end

return M
