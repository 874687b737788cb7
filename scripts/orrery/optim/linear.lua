-- SPDX-License-Identifier: Apache-2.0
--
-- optim.linear{peak =, warmup =, steps =, floor =}: a warm-up, then straight down to the floor.
local _, orrery = ...

return orrery.optim.schedule("linear", { peak = false, warmup = 0, steps = false, floor = 0 }, function(t, o)
  return o.peak + (o.floor - o.peak) * t
end)
