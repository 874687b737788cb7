-- SPDX-License-Identifier: Apache-2.0
--
--- optim.schedule(name, defaults, shape, check)
--- A constructor of learning-rate schedules with a linear warm-up, whose last step has the peak. shape(t, o, n) is the rate
--- of the steps after it: n counts them from 0, and t is n as a part of all up to `steps`, 1 only after these.
---@param name string
---@param defaults table its options, numbers: {peak = false, warmup = 0, steps = false, ...}; false: must be given; a list: one of numbers; without `warmup` or `steps` it has none
---@param shape fun(t:number,o:table,n:integer):number
---@param check? fun(o:table) fails for options that do not fit
---@return fun(options:table):orrery.Schedule
local _, orrery = ...
local fault = require "orrery.lists".fault
local said = { peak = "the rate after the warm-up", steps = "how many steps there are" }

local function is_list_of_numbers(value)
  if type(value) ~= "table" or fault(value) then return false end
  for _, each in ipairs(value) do
    if type(each) ~= "number" then return false end
  end
  return true
end

-- What a value that a default of this kind does not allow is expected to be.
local function expected(default, value)
  if type(default) == "table" then return not is_list_of_numbers(value) and "a list of numbers" end
  return type(default) ~= "string" and type(value) ~= "number" and "a number"
end

local function checked(name, given, defaults)
  local o = orrery.options(name, given, defaults)
  for option, default in pairs(defaults) do
    local wanted = expected(default, o[option])
    if o[option] == false and default == false then
      orrery.fail(("%s: %s is missing%s"):format(name, option, said[option] and ": " .. said[option] or ""))
    elseif wanted then
      orrery.fail(("%s: %s is %s, expected %s"):format(name, option, orrery.engine.describe(o[option]), wanted))
    end
  end
  return o
end

return function(name, defaults, shape, check)
  return function(given)
    local o = checked(name, given, defaults)
    if check then check(o) end
    local warmup = o.warmup or 0
    return function(step)
      if step <= warmup then return o.peak * step / warmup end
      local n, length = step - warmup - 1, (o.steps or math.huge) - warmup
      return shape(length > 0 and math.min(n / length, 1) or 1, o, n)
    end
  end
end
