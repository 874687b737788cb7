-- SPDX-License-Identifier: Apache-2.0
--
--- nn.layernorm(dim, options)
--- The last dim with mean 0 and variance 1, scaled and shifted.
---@param dim integer
---@param options? table
---@option eps number=1e-5
---@option affine boolean=true whether there are a weight and a bias
---@option bias boolean=true whether there is a bias beside the weight
---@option dtype orrery.DType='f32'
---@return orrery.Module
local _, orrery = ...
local nn = orrery.nn

return nn.module("layernorm", function(m, dim, options)
  local o = orrery.options("layernorm", options, { eps = 1e-5, affine = true, bias = true, dtype = "f32" })
  local with_bias = o.affine and o.bias
  if o.affine then m.weight = orrery.parameter(dim, { init = nn.init.ones, dtype = o.dtype }) end
  if with_bias then m.bias = orrery.parameter(dim, { init = nn.init.zeros, dtype = o.dtype }) end
  return function(x)
    local weight = o.affine and m.weight or orrery.ones(dim, x.dtype)
    return orrery.layernorm(x, weight, with_bias and m.bias or orrery.zeros_like(weight), o.eps)
  end
end)
