-- SPDX-License-Identifier: Apache-2.0
--
-- optim.cosine{peak =, warmup =, steps =, floor =}: a warm-up, then half a cosine down to the floor.
local _, orrery = ...

return orrery.optim.schedule("cosine", { peak = false, warmup = 0, steps = false, floor = 0 }, function(t, o)
  return o.floor + (o.peak - o.floor) * 0.5 * (1 + math.cos(math.pi * t))
end)
