-- SPDX-License-Identifier: Apache-2.0
--
--- nn.instancenorm(channels, options)
--- Each channel of a sample [channels, dims...] with mean 0 and variance 1: nn.groupnorm of groups of one.
---@param channels integer
---@param options? table
---@option eps number=1e-5
---@option affine boolean=false whether there are a weight and a bias
---@option dtype orrery.DType='f32'
---@return orrery.Module
local _, orrery = ...

return function(channels, options)
  local o = orrery.options("instancenorm", options, { eps = 1e-5, affine = false, dtype = "f32" })
  return orrery.nn.groupnorm(channels, channels, o)
end
