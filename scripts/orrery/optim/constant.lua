-- SPDX-License-Identifier: Apache-2.0
--
-- optim.constant{peak =, warmup =}: a linear warm-up, then always the peak.
local _, orrery = ...

return orrery.optim.schedule("constant", { peak = false, warmup = 0, steps = false }, function(_, o)
  return o.peak
end)
