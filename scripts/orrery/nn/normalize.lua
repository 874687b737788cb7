-- SPDX-License-Identifier: Apache-2.0
--
--- nn.normalize(x, options)
--- The vectors along a dim divided by their lengths, so that these are 1; as a function to put into nn.sequential.
---@param x orrery.Tensor
---@param options? table
---@option dim integer=-1
---@option p number=2 the norm that lengths are; math.huge: the largest element
---@option eps number=1e-12 the least length that is divided by
---@return orrery.Tensor
local _, orrery = ...
local at_least = require "orrery.losses".at_least
local in_single = require "orrery.in_single"
local norm = require "orrery.vector_norm"

return in_single(function(x, options)
  local o = orrery.options("normalize", options, { dim = -1, p = 2, eps = 1e-12 })
  at_least("normalize", "p", o.p, 0, true)
  at_least("normalize", "eps", o.eps, 0)
  return x / norm(x, o.p, o.dim, true, o.eps)
end)
