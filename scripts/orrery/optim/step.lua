-- SPDX-License-Identifier: Apache-2.0
--
--- optim.step(options)
--- A warm-up, then `every` steps with the peak, as many with gamma times that, and so on.
---@param options table
---@option peak number the rate after the warm-up
---@option warmup integer=0 steps in which the rate grows from 0
---@option every integer how many steps have one rate
---@option gamma number=0.1 from one rate to the next
---@return orrery.Schedule
local _, orrery = ...

local options = { peak = false, warmup = 0, every = false, gamma = 0.1 }

return orrery.optim.schedule("step", options, function(_, o, n) return o.peak * o.gamma ^ (n // o.every) end, function(o)
  if o.every < 1 then orrery.fail(("step: every = %g, expected at least 1"):format(o.every)) end
end)
