-- SPDX-License-Identifier: Apache-2.0
--
--- nn.triplet(anchor, positive, negative, options)
--- Of rows [..., dim] the mean of max(0, margin + distance to the positive - distance to the negative).
---@param anchor orrery.Tensor
---@param positive orrery.Tensor
---@param negative orrery.Tensor
---@param options? table
---@option margin number=1
---@option p number=2 the norm that distances are; math.huge: the largest element
---@option eps number=1e-6 added to each difference
---@option swap boolean=false the distance between positive and negative counts where that is the smaller one
---@option reduction string='mean' mean, sum or none
---@return orrery.Tensor

-- Schroff et al., "FaceNet", 2015 (arXiv:1503.03832); the swap is Balntas et al.'s, 2016.
local losses = require "orrery.losses"
local norm = require "orrery.vector_norm"

local function distance(a, b, o) return norm(a - b + o.eps, o.p, -1, false) end

return function(anchor, positive, negative, options)
  local o = losses.options("triplet", options, { margin = 1, p = 2, eps = 1e-6, swap = false })
  losses.at_least("triplet", "p", o.p, 0, true)
  losses.alike("triplet", anchor, positive, "anchor and positive")
  losses.alike("triplet", anchor, negative, "anchor and negative")
  anchor, positive, negative = losses.wide(anchor), losses.wide(positive), losses.wide(negative)
  local far = distance(anchor, negative, o)
  if o.swap then far = far:minimum(distance(positive, negative, o)) end
  return losses.reduced((distance(anchor, positive, o) - far + o.margin):maximum(0), o.reduction)
end
