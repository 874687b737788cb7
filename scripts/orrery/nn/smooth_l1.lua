-- SPDX-License-Identifier: Apache-2.0
--
--- nn.smooth_l1(x, y, options)
--- Mean of absolute differences d, less beta / 2, that are d^2 / (2 beta) below beta.
---@param x orrery.Tensor
---@param y orrery.Tensor|number of the same shape
---@param options? table
---@option beta number=1 0: nn.l1
---@option reduction string='mean' mean, sum or none
---@return orrery.Tensor

-- Girshick, "Fast R-CNN", 2015 (arXiv:1504.08083).
local _, orrery = ...
local losses = require "orrery.losses"

return function(x, y, options)
  local o = losses.options("smooth_l1", options, { beta = 1 })
  losses.at_least("smooth_l1", "beta", o.beta, 0)
  losses.alike("smooth_l1", x, y)
  local d = (losses.wide(x) - y):abs()
  if o.beta > 0 then d = orrery.where(d:lt(o.beta), d * d * (0.5 / o.beta), d - 0.5 * o.beta) end
  return losses.reduced(d, o.reduction)
end
