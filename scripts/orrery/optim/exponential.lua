-- SPDX-License-Identifier: Apache-2.0
--
--- optim.exponential(options)
--- A warm-up, then one step with the peak, and each further one with gamma times the rate before.
---@param options table
---@option peak number the rate after the warm-up
---@option warmup integer=0 steps in which the rate grows from 0
---@option gamma number
---@return orrery.Schedule
local _, orrery = ...

return orrery.optim.schedule("exponential", { peak = false, warmup = 0, gamma = false }, function(_, o, n)
  return o.peak * o.gamma ^ n
end)
