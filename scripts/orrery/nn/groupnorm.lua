-- SPDX-License-Identifier: Apache-2.0
--
--- nn.groupnorm(groups, channels, options)
--- Each group of channels of a sample [channels, dims...] with mean 0 and variance 1, each channel scaled and shifted.
---@param groups integer
---@param channels integer
---@param options? table
---@option eps number=1e-5
---@option affine boolean=true whether there are a weight and a bias
---@option dtype orrery.DType='f32'
---@return orrery.Module
local _, orrery = ...
local nn = orrery.nn
local spatial = require "orrery.nn.spatial"

return nn.module("groupnorm", function(m, groups, channels, options)
  local o = orrery.options("groupnorm", options, { eps = 1e-5, affine = true, dtype = "f32" })
  spatial.check_groups("groupnorm", groups, channels, channels)
  if o.affine then
    m.weight = orrery.parameter(channels, { init = nn.init.ones, dtype = o.dtype })
    m.bias = orrery.parameter(channels, { init = nn.init.zeros, dtype = o.dtype })
  end
  return function(x)
    local n = #x.shape - 2
    spatial.check("groupnorm", x, n, channels)
    local rows = x:reshape(x.shape[1], groups, -1)
    local width = rows.shape[3]
    local y = orrery.layernorm(rows, orrery.ones(width, x.dtype), orrery.zeros(width, x.dtype), o.eps)
    y = y:reshape(table.unpack(x.shape, 1, n + 2))
    if not o.affine then return y end
    local each = spatial.join(channels, spatial.filled(n, 1))
    return y * m.weight:reshape(each) + m.bias:reshape(each)
  end
end)
