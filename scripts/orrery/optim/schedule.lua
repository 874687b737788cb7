-- SPDX-License-Identifier: Apache-2.0
--
--- optim.schedule(name, defaults, shape)
--- A constructor of learning-rate schedules with a linear warm-up. shape(t, o) is the rate after the
--- warm-up, t in [0, 1] being the way from there to `steps`.
---@param name string
---@param defaults table its options, {peak = false, warmup = 0, steps = false, ...}
---@param shape fun(t:number,o:table):number
---@return fun(options:table):orrery.Schedule
local _, orrery = ...

return function(name, defaults, shape)
  return function(given)
    local o = orrery.options(name, given, defaults)
    if not o.peak then orrery.fail(name .. ": peak is missing: the rate after the warm-up") end
    return function(step)
      if step <= o.warmup then return o.peak * step / o.warmup end
      local length = (o.steps or 0) - o.warmup
      local t = length > 0 and math.min((step - o.warmup) / length, 1) or 1
      return shape(t, o)
    end
  end
end
