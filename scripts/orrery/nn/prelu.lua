-- SPDX-License-Identifier: Apache-2.0
--
--- nn.prelu(count, options)
--- x where it is positive, else x times a trained weight: one for all, or one for each channel of [batch, channels,
--- dims...].
---@param count? integer=1 1, or how many channels
---@param options? table
---@option init orrery.Initial=nn.init.constant(0.25) how the weight begins
---@option dtype orrery.DType='f32'
---@return orrery.Module

-- He et al., 2015 (arXiv:1502.01852).
local _, orrery = ...
local nn = orrery.nn
local spatial = require "orrery.nn.spatial"

return nn.module("prelu", function(m, count, options)
  local o = orrery.options("prelu", options, { init = nn.init.constant(0.25), dtype = "f32" })
  count = count or 1
  m.weight = orrery.parameter(count, { init = nn.init.resolve(o.init, { count }), dtype = o.dtype })
  return function(x)
    local slope = m.weight
    if count > 1 then
      local n = #x.shape - 2
      spatial.check("prelu", x, n, count)
      slope = slope:reshape(spatial.join(count, spatial.filled(n, 1)))
    end
    return orrery.where(x:gt(0), x, x * slope)
  end
end)
