-- SPDX-License-Identifier: Apache-2.0
--
--- nn.mse(x, y)
--- Mean of squared differences.
---@param x orrery.Tensor
---@param y orrery.Tensor|number
---@return orrery.Tensor
return function(x, y)
  local difference = x - y
  return (difference * difference):mean()
end
