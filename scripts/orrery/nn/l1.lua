-- SPDX-License-Identifier: Apache-2.0
--
--- nn.l1(x, y, options)
--- Mean of absolute differences.
---@param x orrery.Tensor
---@param y orrery.Tensor|number of the same shape
---@param options? table
---@option reduction string='mean' mean, sum or none
---@return orrery.Tensor
local losses = require "orrery.losses"

return function(x, y, options)
  local o = losses.options("l1", options, {})
  losses.alike("l1", x, y)
  return losses.reduced((losses.wide(x) - y):abs(), o.reduction)
end
