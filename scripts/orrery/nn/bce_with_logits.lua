-- SPDX-License-Identifier: Apache-2.0
--
--- nn.bce_with_logits(x, y, options)
--- Binary cross-entropy of the probabilities sigmoid(x) and targets y in [0, 1] of the same shape, also where these
--- probabilities are nearly 0 or 1.
---@param x orrery.Tensor
---@param y orrery.Tensor|number
---@param options? table
---@option pos_weight orrery.Tensor|number=1 how much positive targets count, one for all or one for each of the last dims
---@option reduction string='mean' mean, sum or none
---@return orrery.Tensor
local _, orrery = ...
local losses = require "orrery.losses"
local softplus = require "orrery.elementary".softplus

return function(x, y, options)
  local o = losses.options("bce_with_logits", options, { pos_weight = 1 })
  losses.alike("bce_with_logits", x, y)
  x, y = losses.wide(x), losses.wide(y)
  local yes = softplus(-x) * y
  if o.pos_weight ~= 1 then yes = yes * o.pos_weight end
  losses.alike("bce_with_logits", x, yes, "x and the loss with pos_weight")
  return losses.reduced(yes + softplus(x) * (1 - y), o.reduction)
end
