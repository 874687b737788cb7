-- SPDX-License-Identifier: Apache-2.0
--
--- nn.rmsnorm(dim, options)
--- The last dim over its root mean square, scaled.
---@param dim integer
---@param options? table
---@option eps number=1e-5
---@option affine boolean=true whether there is a weight
---@option dtype orrery.DType='f32'
---@return orrery.Module
local _, orrery = ...
local nn = orrery.nn

return nn.module("rmsnorm", function(m, dim, options)
  local o = orrery.options("rmsnorm", options, { eps = 1e-5, affine = true, dtype = "f32" })
  if o.affine then m.weight = orrery.parameter(dim, { init = nn.init.ones, dtype = o.dtype }) end
  return function(x) return orrery.rmsnorm(x, o.affine and m.weight or orrery.ones(dim, x.dtype), o.eps) end
end)
