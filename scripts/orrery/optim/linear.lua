-- SPDX-License-Identifier: Apache-2.0
--
-- optim.linear{peak =, warmup =, steps =, floor =}: a warm-up, then straight down to the floor.
local _, orrery = ...

local options = { peak = false, warmup = 0, steps = false, floor = 0 }

return orrery.optim.schedule("linear", options, function(t, o)
  return o.peak + (o.floor - o.peak) * t
end)
