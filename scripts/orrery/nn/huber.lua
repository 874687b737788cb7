-- SPDX-License-Identifier: Apache-2.0
--
--- nn.huber(x, y, options)
--- Mean of d^2 / 2 of absolute differences d up to delta, and of delta (d - delta / 2) of larger ones.
---@param x orrery.Tensor
---@param y orrery.Tensor|number of the same shape
---@param options? table
---@option delta number=1
---@option reduction string='mean' mean, sum or none
---@return orrery.Tensor

-- Huber, "Robust Estimation of a Location Parameter", 1964.
local _, orrery = ...
local losses = require "orrery.losses"

return function(x, y, options)
  local o = losses.options("huber", options, { delta = 1 })
  losses.at_least("huber", "delta", o.delta, 0, true)
  losses.alike("huber", x, y)
  local d = (losses.wide(x) - y):abs()
  return losses.reduced(orrery.where(d:le(o.delta), d * d * 0.5, (d - 0.5 * o.delta) * o.delta), o.reduction)
end
