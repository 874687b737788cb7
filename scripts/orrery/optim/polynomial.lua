-- SPDX-License-Identifier: Apache-2.0
--
--- optim.polynomial(options)
--- A warm-up, then down to the floor as a power of what is left of the steps: optim.linear if it is 1.
---@param options table
---@option peak number the rate after the warm-up
---@option warmup integer=0 steps in which the rate grows from 0
---@option steps integer how many there are, the warm-up's among them
---@option power number=1
---@option floor number=0 the rate after the last step
---@return orrery.Schedule
local _, orrery = ...

local options = { peak = false, warmup = 0, steps = false, power = 1, floor = 0 }

return orrery.optim.schedule("polynomial", options, function(t, o)
  return o.floor + (o.peak - o.floor) * (1 - t) ^ o.power
end)
