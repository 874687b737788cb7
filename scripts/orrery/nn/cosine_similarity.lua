-- SPDX-License-Identifier: Apache-2.0
--
--- nn.cosine_similarity(a, b, options)
--- The cosines of the angles between vectors along a dim, which is gone. Dims of size 1 are repeated: [n, 1, d] and
--- [1, m, d] give [n, m].
---@param a orrery.Tensor
---@param b orrery.Tensor
---@param options? table
---@option dim integer=-1
---@option eps number=1e-8 the least length that is divided by
---@return orrery.Tensor
local _, orrery = ...
local at_least = require "orrery.losses".at_least
local in_single = require "orrery.in_single"
local normalize = orrery.nn.normalize

return in_single(function(a, b, options)
  local o = orrery.options("cosine_similarity", options, { dim = -1, eps = 1e-8 })
  at_least("cosine_similarity", "eps", o.eps, 0)
  b = b.dtype:find "16" and b:cast "f32" or b
  return (normalize(a, o) * normalize(b, o)):sum(o.dim)
end)
