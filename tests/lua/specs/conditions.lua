-- SPDX-License-Identifier: Apache-2.0
--
-- Conditions that are no mistake: is there a tensor at all, sizes, kinds, texts.
local orrery = require "orrery"

local kind, mask = "twice", nil
local f = orrery.func(function(x, y)
  if mask then x = x * mask end
  if y ~= nil and x ~= y then x = x + y end -- neither is a number
  if x.shape[1] == 2 and #x.shape == 1 then x = x * 10 end
  if kind == "twice" then x = x * 2 end -- "x == 0" in a comment
  local none = x == nil or 'x == 0'
  return x:gt(50), none and x
end)
local ok, message = pcall(f, { 1.5, 3.0 }, { 1.5, 3.0 })
assert(not ok and message:find "write a:eq%(b%)") -- two tensors

local g = orrery.func(function(x, y)
  local larger = x:gt(y) -- a condition that is used
  if larger then x = orrery.where(larger, x, y) end
  return x
end)
assert(g({ 1.5, 3.0 }, { 2.5, 2.0 }):tolist()[1] == 2.5)

-- A chunk under a name that is no file: its lines are not known, and what nothing uses in it is no condition.
local h = orrery.func(load("local x = ... local unused = x + 1 return x * 2", "=made"))
assert(h({ 1.5 }):tolist()[1] == 3)
