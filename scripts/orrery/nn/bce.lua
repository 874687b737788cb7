-- SPDX-License-Identifier: Apache-2.0
--
--- nn.bce(x, y, options)
--- Binary cross-entropy of probabilities x and targets y of the same shape, both in [0, 1]. Logarithms below -100 count
--- as -100. Of logits nn.bce_with_logits keeps more digits.
---@param x orrery.Tensor
---@param y orrery.Tensor
---@param options? table
---@option reduction string='mean' mean, sum or none
---@return orrery.Tensor
local _, orrery = ...
local losses = require "orrery.losses"
local log1p = require "orrery.elementary".log1p
local gradient = require "orrery.nn.spatial".gradient

local function logs(x) return x:log():maximum(-100), log1p(-x):maximum(-100) end

local each = gradient {
  forward = function(x, y)
    local yes, no = logs(x)
    return -(y * yes + (1 - y) * no)
  end,
  backward = function(dy, _, x, y)
    local yes, no = logs(x)
    return dy * (x - y) / ((1 - x) * x):maximum(1e-12), dy * (no - yes)
  end,
}

return function(x, y, options)
  local o = losses.options("bce", options, {})
  losses.alike("bce", x, y)
  x = losses.wide(x)
  return losses.reduced(each(x, y:cast(x.dtype)), o.reduction)
end
