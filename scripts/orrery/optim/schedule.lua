-- SPDX-License-Identifier: Apache-2.0
--
--- optim.schedule(name, defaults, shape)
--- A constructor of learning-rate schedules with a linear warm-up. shape(t, o) is the rate after the
--- warm-up, t in [0, 1] being the way from there to `steps`.
---@param name string
---@param defaults table its options, numbers: {peak = false, warmup = 0, steps = false, ...}; false: must be given
---@param shape fun(t:number,o:table):number
---@return fun(options:table):orrery.Schedule
local _, orrery = ...
local said = { peak = "the rate after the warm-up", steps = "the last step" }

local function checked(name, given, defaults)
  local o = orrery.options(name, given, defaults)
  for option, default in pairs(defaults) do
    if o[option] == false then
      orrery.fail(("%s: %s is missing%s"):format(name, option, said[option] and ": " .. said[option] or ""))
    elseif type(default) ~= "string" and type(o[option]) ~= "number" then
      orrery.fail(("%s: %s is %s, expected a number"):format(name, option, orrery.engine.describe(o[option])))
    end
  end
  return o
end

return function(name, defaults, shape)
  return function(given)
    local o = checked(name, given, defaults)
    return function(step)
      if step <= o.warmup then return o.peak * step / o.warmup end
      local length = o.steps - o.warmup
      local t = length > 0 and math.min((step - o.warmup) / length, 1) or 1
      return shape(t, o)
    end
  end
end
