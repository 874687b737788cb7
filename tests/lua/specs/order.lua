-- SPDX-License-Identifier: Apache-2.0
-- pairs and next visit numbers, then strings, sorted.
local seen = {}
for key in pairs { b = 1, a = 2, [10] = 3, [2] = 4, c = 5 } do seen[#seen + 1] = tostring(key) end
assert(table.concat(seen, " ") == "2 10 a b c", table.concat(seen, " "))

local t, count = { x = 1, y = 2, z = 3 }, 0
for key in next, t do
  count = count + 1
  assert(key == ("xyz"):sub(count, count))
end
assert(count == 3 and next {} == nil)

-- A key may be cleared while it is visited.
for key in pairs(t) do t[key] = nil end
assert(next(t) == nil)

-- Each sorted list is sorted, whatever its size.
local many = {}
for i = 1, 200 do many[("k%d"):format(i * 7919 % 1009)] = i end
local last = ""
for key in pairs(many) do
  assert(last < key)
  last = key
end

-- A caught error names the line of the call.
local ok, message = pcall(function() for _ in pairs(3) do break end end)
assert(not ok and message:find "^order.lua:%d+: bad argument #1 to 'pairs' %(table expected, got number%)$", message)
