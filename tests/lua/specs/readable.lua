-- SPDX-License-Identifier: Apache-2.0
--
-- Dataset:readable and Dataset:weighted.
local orrery = require "orrery"
local data = orrery.data

local function refused(fragment, f, ...)
  local ok, why = pcall(f, ...)
  assert(not ok and tostring(why):find(fragment, 1, true), tostring(why))
end

local function values(set)
  local list = {}
  for k = 1, #set do list[k] = orrery.engine.sample(set, k).x:item() end
  return table.concat(list, " ")
end

local numbers = data.arrays { x = { 1.0, 2.0, 3.0, 4.0, 5.0 } }
local broken, looks = { [2] = true, [5] = true }, 0
local fragile = numbers:map(function(sample)
  looks = looks + 1
  if broken[sample.x:item()] then error "this one is broken" end
  return sample
end)
local left, count = fragile:readable()
assert(values(left) == "1.0 3.0 4.0" and count == 2)
local all, none = numbers:readable()
assert(#all == 5 and none == 0)

-- A file keeps what was found, even when other samples break or are mended.
local path = os.tmpname()
os.remove(path)
assert(values(fragile:readable { file = path }) == "1.0 3.0 4.0")
broken, looks = { [1] = true }, 0
local again, found = fragile:readable { file = path }
assert(looks == 0 and #again == 3 and found == 2)
refused("is of 5 samples, and the dataset has 3 samples; remove the file", numbers:take({ 1, 2, 3 }).readable,
  numbers:take { 1, 2, 3 }, { file = path })
io.open(path, "w"):write("something\n"):close()
refused("is of something else", numbers.readable, numbers, { file = path })
os.remove(path)
broken = { true, true, true, true, true }
refused("none of 5 samples can be read", fragile.readable, fragile)

-- Drawn as often as weights say.
local order = numbers:weighted({ 1, 0, 2, 0, 1 }, { samples = 4000 })
local seen = { 0, 0, 0, 0, 0 }
for _, sample in ipairs(order(1, math.random)) do seen[sample] = seen[sample] + 1 end
assert(seen[2] == 0 and seen[4] == 0)
assert(math.abs(seen[1] - 1000) < 150 and math.abs(seen[3] - 2000) < 200, table.concat(seen, " "))
assert(#numbers:weighted({ 0, 0, 1, 0, 0 })(1, math.random) == 5)
local function largest() return 1 - 2 ^ -53 end
for _, sample in ipairs(numbers:weighted { 0, 0, 1, 0, 0 } (1, largest)) do assert(sample == 3) end
refused("4 weights and 5 samples", numbers.weighted, numbers, { 1, 2, 3, 4 })
refused("weight 2 is -1", numbers.weighted, numbers, { 1, -1, 1, 1, 1 })
refused("weights add up to 0", numbers.weighted, numbers, { 0, 0, 0, 0, 0 })
refused("samples is 0", numbers.weighted, numbers, { 1, 1, 1, 1, 1 }, { samples = 0 })
