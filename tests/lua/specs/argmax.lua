-- SPDX-License-Identifier: Apache-2.0
--
-- Places of the largest and the smallest along each dim, against loops in Lua.
local orrery = require "orrery"

local sizes = { 3, 4, 5 }
local function number(i, j, k, dtype)
  local whole = (i * 7 + j * 5 + k * 11 + i * j * k) % 9 - (dtype == "u8" and 0 or 4)
  if dtype == "bool" then return whole > 0 end
  return whole
end
local function cube(dtype)
  local list = {}
  for i = 1, sizes[1] do
    list[i] = {}
    for j = 1, sizes[2] do
      list[i][j] = {}
      for k = 1, sizes[3] do list[i][j][k] = number(i, j, k, dtype) end
    end
  end
  return orrery.tensor(list, dtype)
end

-- The first place of the best along `dim` from the place `at` of the other dims, from 0.
local function by_hand(dim, at, sign, dtype)
  local best, place
  for n = 1, sizes[dim] do
    at[dim] = n
    local value = number(at[1], at[2], at[3], dtype)
    value = sign * (type(value) == "boolean" and (value and 1 or 0) or value)
    if not best or value > best then best, place = value, n - 1 end
  end
  return place
end

local function check(name, sign, dtype, dim)
  local x = cube(dtype)
  local found = orrery.func(function(y) return y[name](y, dim), y[name](y, dim - 4, { keep = true }) end)
  local alone, kept = found(x)
  local others, wide = {}, { table.unpack(sizes) }
  for d = 1, 3 do others[#others + 1] = d ~= dim and d or nil end
  wide[dim] = 1
  assert(table.concat(kept.shape, " ") == table.concat(wide, " "), tostring(kept.shape))
  assert(table.concat(alone.shape, " ") == sizes[others[1]] .. " " .. sizes[others[2]], tostring(alone.shape))
  local list, at = alone:tolist(), {}
  for a = 1, sizes[others[1]] do
    for b = 1, sizes[others[2]] do
      at[others[1]], at[others[2]] = a, b
      local wanted = by_hand(dim, at, sign, dtype)
      assert(list[a][b] == wanted, ("%s of %s along %d at %d, %d: %d, expected %d"):format(name, dtype, dim, a, b, list[a][b], wanted))
      at[dim] = nil
    end
  end
  local flat, again = orrery.func(function(y) return y:flatten() end)(kept):tolist(), orrery.func(function(y) return y:flatten() end)(alone):tolist()
  assert(table.concat(flat, " ") == table.concat(again, " "))
end

for _, dtype in ipairs { "f32", "f64", "bf16", "i64", "i32", "u8", "bool" } do
  for dim = 1, 3 do
    if dtype ~= "bool" then check("argmax", 1, dtype, dim) end
    check("argmin", -1, dtype, dim)
  end
end

-- At once, and of the last dim by itself.
local x = orrery.tensor({ { 1, 5, 2 }, { 4, 3, 9 } }, "f32")
assert(table.concat(x:argmax(1):tolist(), " ") == "1 0 1" and table.concat(x:argmax():tolist(), " ") == "1 2")
assert(table.concat(x:argmin(1):tolist(), " ") == "0 1 0" and table.concat(x:argmin():tolist(), " ") == "0 1")

local ok, why = pcall(function() return x:argmax(3) end)
assert(not ok and why:find("dim 3 does not exist", 1, true), why)
ok, why = pcall(function() return x:argmax(1, { kept = true }) end)
assert(not ok and why:find("unknown option 'kept'", 1, true), why)
