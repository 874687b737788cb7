-- SPDX-License-Identifier: Apache-2.0
--
--- optim.cosine(options)
--- A warm-up, then half a cosine down to the floor.
---@param options table
---@option peak number the rate after the warm-up
---@option warmup integer=0 steps in which the rate grows from 0
---@option steps integer how many there are, the warm-up's among them
---@option floor number=0 the rate after the last step
---@return orrery.Schedule
local _, orrery = ...

local options = { peak = false, warmup = 0, steps = false, floor = 0 }

return orrery.optim.schedule("cosine", options, function(t, o)
  return o.floor + (o.peak - o.floor) * 0.5 * (1 + math.cos(math.pi * t))
end)
