-- SPDX-License-Identifier: Apache-2.0
--
--- nn.cosine_embedding(a, b, y, options)
--- Of pairs of rows a and b [..., dim] the mean of 1 - cos where y [...] is 1, and of max(0, cos - margin) where it is -1.
---@param a orrery.Tensor
---@param b orrery.Tensor
---@param y orrery.Tensor 1 or -1 for each pair
---@param options? table
---@option margin number=0
---@option reduction string='mean' mean, sum or none
---@return orrery.Tensor
local _, orrery = ...
local losses = require "orrery.losses"

local function square(x) return x:sumsq(-1) + 1e-12 end

return function(a, b, y, options)
  local o = losses.options("cosine_embedding", options, { margin = 0 })
  losses.alike("cosine_embedding", a, b, "a and b")
  a, b = losses.wide(a), losses.wide(b)
  local cos = (a * b):sum(-1) / (square(a) * square(b)):sqrt()
  losses.alike("cosine_embedding", cos, y, "the cosines and y")
  local apart = orrery.where(y:eq(-1), (cos - o.margin):maximum(0), 0)
  return losses.reduced(orrery.where(y:eq(1), 1 - cos, apart), o.reduction)
end
