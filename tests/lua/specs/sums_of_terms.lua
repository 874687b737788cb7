-- SPDX-License-Identifier: Apache-2.0
--
-- Sums over dims before the last of an expression that nothing else reads: kernels may add up its elements without
-- storing them. They have the bits of the sums of elements that are stored, which they are where the script reads these,
-- too.
local orrery = require "orrery"

local seed = 12345
local function below(n) -- 0 .. n - 1
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed // 65536 % n
end

-- An expression of x and y, of which y repeats along some dims.
local terms = {
  function(x, y) return x * y end,
  function(x, y) return (x - y):relu() * x end,
  function(x, y) return (x + y):exp() end,
}

local function normal(shape) return orrery.func(function() return orrery.normal(shape) end)() end

local function check(number, shape, repeated, first, last, windows)
  local dims, narrow = {}, {}
  for i = first, last do dims[#dims + 1] = i end
  for i, length in ipairs(shape) do narrow[i] = repeated[i] and 1 or length end
  local function elements(x, y)
    if windows then x = x:windows { 3 } end -- which overlap in memory
    return terms[number % #terms + 1](x, y)
  end
  local alone = orrery.func(function(x, y) return elements(x, y):sum(dims) end)
  local stored = orrery.func(function(x, y)
    local all = elements(x, y)
    return all:sum(dims), all
  end)
  local x, y = normal(windows or shape), normal(narrow)
  local apart = orrery.func(function(a, b) return (a - b):abs():max() end)(alone(x, y), (stored(x, y))):item()
  assert(apart == 0, ("case %d, %s over dims %d to %d: sums differ by %g"):format(
    number, table.concat(shape, " x "), first, last, apart))
end

for number = 1, 60 do
  local shape, repeated = {}, {}
  local rank = 2 + below(4)
  for i = 1, rank do
    local lengths = { 1, 2, 3, 5, 7, 16, 33, 65 }
    shape[i] = i == rank and ({ 2, 16, 31, 32, 40, 96, 130, 256 })[below(8) + 1] or lengths[below(rank < 4 and 8 or 5) + 1]
    repeated[i] = below(3) == 0
  end
  local first = 1 + below(rank - 1)
  local last = first + below(rank - first)
  check(number, shape, repeated, first, last)
end
for number = 61, 72 do
  local channels = ({ 8, 32, 48, 64 })[number % 4 + 1]
  local length = 3 + below(90)
  check(number, { 4, length - 2, 3, channels }, { false, false, true, false }, 1, 2, { 4, length, channels })
end
-- More rows than a block has, and more columns than are computed at a time.
check(1, { 200, 3, 5000 }, { false, true, false }, 1, 1)
check(2, { 3, 700, 4, 33 }, { false, false, true, true }, 1, 2)
check(3, { 2, 129, 2, 64 }, { true, false, false, false }, 2, 2)
