-- SPDX-License-Identifier: Apache-2.0
-- Programs of a script draw different random numbers; variants of one program, and a second run of
-- the script, the same.
local orrery = require "orrery"
local optim = orrery.optim

local function drawing()
  local w = orrery.parameter({ 1 }, { name = "w" })
  local seen = orrery.buffer({ 4 })
  return seen, orrery.compile(function(b)
    seen:update(orrery.uniform { 4 })
    return (b.x * w):mean()
  end, { params = { w }, optimizer = optim.sgd { lr = 0.1 } })
end
local function numbers(tensor) return tostring(tensor) end
local batch, other = { x = { { 1.0 }, { 2.0 } } }, { x = { { 1.0 } } }
local seen, run = drawing()
local elsewhere, second = drawing()
run:step(batch)
second:step(batch)
assert(numbers(seen:read()) ~= numbers(elsewhere:read()))

-- Step 2 of one and of the other, whatever the shape of the batch.
run:step(other)
second:step(batch)
local third_seen, third = drawing()
assert(numbers(seen:read()) ~= numbers(elsewhere:read()))
third:step(batch)
assert(numbers(third_seen:read()) ~= numbers(seen:read()))

local f = orrery.func(function() return orrery.uniform { 4 } end)
local g = orrery.func(function() return orrery.uniform { 4 } end)
assert(numbers(f()) ~= numbers(g()))
