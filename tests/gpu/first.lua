-- SPDX-License-Identifier: Apache-2.0
--
-- The first things that a GPU is asked for, each held against what is known. Prints a line for each when it is
-- known: "NAME passed (S s)" or "NAME failed: WHY (S s)".
local orrery = require "orrery"

local began = orrery.time()
local function tell(name, wrong)
  print(("%s %s (%.2f s)"):format(name, wrong and "failed: " .. wrong or "passed", orrery.time() - began))
  io.stdout:flush()
  began = orrery.time()
end

-- Small whole numbers: their products and sums are exact in every dtype.
local function numbers(seed)
  local rows = {}
  for i = 1, 32 do
    rows[i] = {}
    for j = 1, 32 do rows[i][j] = (i * 7 + j * 3 + i * j * seed) % 5 - 2 end
  end
  return rows
end

-- Where two lists of lists differ, nil if nowhere.
local function difference(found, wanted)
  for i, row in ipairs(wanted) do
    for j, x in ipairs(row) do
      local y = found[i][j]
      if y ~= x then return ("[%d][%d] is %s, not %s"):format(i, j, y, x) end
    end
  end
end

local function map(a, b, f)
  local rows = {}
  for i = 1, 32 do
    rows[i] = {}
    for j = 1, 32 do rows[i][j] = f(a, b, i, j) end
  end
  return rows
end

local function dot(a, b, i, j)
  local sum = 0
  for k = 1, 32 do sum = sum + a[i][k] * b[k][j] end
  return sum
end
local function polynomial(a, b, i, j) return a[i][j] * 0.5 + b[i][j] * b[i][j] end

-- Calls of a function: the first one launches, the second is recorded, the third replays a graph.
local function calls(name, count, f, wanted_of)
  local compiled = orrery.func(f)
  for call = 1, count do
    local a, b = numbers(call), numbers(call + 1)
    local found = compiled(orrery.tensor(a, "f32"), orrery.tensor(b, "f32")):tolist()
    tell(call == 1 and name or ("%s, call %d"):format(name, call), difference(found, map(a, b, wanted_of)))
  end
end

calls("copies", 1, function(a) return a:reshape(32, 32) end, function(a, _, i, j) return a[i][j] end)
calls("a pointwise kernel", 1, function(a, b) return a * 0.5 + b * b end, polynomial)
calls("a product in f32", 1, function(a, b) return a:matmul(b) end, dot)
calls("a product in bf16", 1, function(a, b) return a:cast("bf16"):matmul(b:cast("bf16")):cast("f32") end, dot)
calls("a graph", 4, function(a, b) return a:matmul(b) + a * 0.5 end,
  function(a, b, i, j) return dot(a, b, i, j) + a[i][j] * 0.5 end)
