-- SPDX-License-Identifier: Apache-2.0
--
--- orrery.normal(dims_or_tensor)
--- New numbers of N(0, 1) at every step: of these dims, or shaped like a tensor and one for each of its elements.
---@param dims_or_tensor integer|integer[]|orrery.Tensor
---@return orrery.Tensor

-- Box and Muller, "A Note on the Generation of Random Normal Deviates", 1958.
local _, orrery = ...

return function(like)
  local radius, angle = orrery.uniform(like), orrery.uniform(like)
  return ((1 - radius):log() * -2):sqrt() * (angle * (2 * math.pi)):cos()
end
