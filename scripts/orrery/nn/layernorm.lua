-- SPDX-License-Identifier: Apache-2.0
--
--- nn.layernorm(dim, options)
--- The last dim with mean 0 and variance 1, scaled and shifted.
---@param dim integer
---@param options? table
---@option eps number=1e-5
---@option dtype orrery.DType='f32'
---@return orrery.Module
local _, orrery = ...
local nn = orrery.nn

return nn.module("layernorm", function(m, dim, options)
  local o = orrery.options("layernorm", options, { eps = 1e-5, dtype = "f32" })
  m.weight = orrery.parameter(dim, { init = nn.init.ones, dtype = o.dtype })
  m.bias = orrery.parameter(dim, { init = nn.init.zeros, dtype = o.dtype })
  return function(x) return orrery.layernorm(x, m.weight, m.bias, o.eps) end
end)
