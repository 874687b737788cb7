-- SPDX-License-Identifier: Apache-2.0
--
--- nn.elu(x, options)
--- x where it is positive, else alpha (exp(x) - 1), as a function to put into nn.sequential.
---@param x orrery.Tensor
---@param options? table
---@option alpha number=1
---@return orrery.Tensor

-- Clevert et al., 2016 (arXiv:1511.07289).
local _, orrery = ...
local in_single = require "orrery.in_single"
local expm1 = require "orrery.elementary".expm1

return in_single(function(x, options)
  local o = orrery.options("elu", options, { alpha = 1 })
  return orrery.where(x:gt(0), x, expm1(x:minimum(0)) * o.alpha)
end)
