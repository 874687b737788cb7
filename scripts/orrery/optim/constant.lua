-- SPDX-License-Identifier: Apache-2.0
--
--- optim.constant(options)
--- A linear warm-up, then always the peak.
---@param options table
---@option peak number the rate after the warm-up
---@option warmup integer=0 steps in which the rate grows from 0
---@option steps integer=math.huge has no effect here
---@return orrery.Schedule
local _, orrery = ...

return orrery.optim.schedule("constant", { peak = false, warmup = 0, steps = math.huge }, function(_, o)
  return o.peak
end)
