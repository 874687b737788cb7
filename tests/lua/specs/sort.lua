-- SPDX-License-Identifier: Apache-2.0
--
-- Sorted elements and their positions against a sort in Lua that keeps the order of equal elements.
local orrery = require "orrery"

local function by_hand(row, descending)
  local order = {}
  for i = 1, #row do order[i] = i end
  table.sort(order, function(a, b)
    if row[a] ~= row[b] then return (row[a] < row[b]) ~= descending end
    return a < b
  end)
  return order
end

local function numbers(rows, columns)
  local list = {}
  for i = 1, rows do
    list[i] = {}
    for j = 1, columns do list[i][j] = math.random(-6, 6) end
  end
  return list
end

local function transposed(list)
  local other = {}
  for j = 1, #list[1] do
    other[j] = {}
    for i = 1, #list do other[j][i] = list[i][j] end
  end
  return other
end

for _, case in ipairs { { "f32", 3, 17 }, { "i64", 4, 9 }, { "i32", 2, 40 }, { "bf16", 5, 6 }, { "f64", 1, 1 } } do
  local dtype, rows, columns = table.unpack(case)
  local list = numbers(rows, columns)
  for _, descending in ipairs { false, true } do
    for dim = 1, 2 do
      local sorted = orrery.func(function(x) return x:sort(dim, { descending = descending }) end)
      local values, places = sorted(orrery.tensor(dim == 2 and list or transposed(list), dtype))
      values, places = values:tolist(), places:tolist()
      if dim == 1 then values, places = transposed(values), transposed(places) end
      for i, row in ipairs(list) do
        for j, place in ipairs(by_hand(row, descending)) do
          assert(places[i][j] == place - 1 and values[i][j] == row[place],
            ("%s dim %d row %d: %g from %d at %d"):format(dtype, dim, i, values[i][j], places[i][j], j))
        end
      end
    end
  end
end

local least = math.mininteger
local extremes = orrery.func(function(x) return (x:sort()) end)(orrery.tensor({ 0, math.maxinteger, least, -1 }, "i64"))
assert(table.concat(extremes:tolist(), " ") == table.concat({ least, -1, 0, math.maxinteger }, " "))

-- The gradient goes back to where the elements were.
local weight = orrery.nn.parameter { 4 }
weight:write(orrery.tensor({ 3, -1, 2, 0 }, "f32"))
local _, gradients = orrery.value_and_grad(function(b)
  return (weight:sort() * (orrery.iota(4, "f32") * 10 + 10)):sum() * b.one:mean()
end, { weight = weight }) { one = orrery.tensor({ 1 }, "f32") }
local found = select(2, next(gradients)):read():tolist()
assert(table.concat(found, " ") == "40.0 10.0 30.0 20.0", table.concat(found, " "))
