-- SPDX-License-Identifier: Apache-2.0
--
--- nn.mse(x, y, options)
--- Mean of squared differences of tensors of one shape, or from a number.
---@param x orrery.Tensor
---@param y orrery.Tensor|number
---@param options? table
---@option reduction string='mean' mean, sum or none
---@return orrery.Tensor
local losses = require "orrery.losses"

return function(x, y, options)
  local o = losses.options("mse", options, {})
  losses.alike("mse", x, y)
  local difference = x - y
  return losses.reduced(difference * difference, o.reduction)
end
