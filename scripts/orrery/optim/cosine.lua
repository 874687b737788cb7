-- SPDX-License-Identifier: Apache-2.0
--
-- optim.cosine{peak =, warmup =, steps =, floor =}: a warm-up, then half a cosine down to the
-- floor.
local _, orrery = ...

local options = { peak = false, warmup = 0, steps = false, floor = 0 }

return orrery.optim.schedule("cosine", options, function(t, o)
  return o.floor + (o.peak - o.floor) * 0.5 * (1 + math.cos(math.pi * t))
end)
