-- SPDX-License-Identifier: Apache-2.0
--
--- nn.leaky_relu(x, options)
--- x where it is positive, else slope x, as a function to put into nn.sequential.
---@param x orrery.Tensor
---@param options? table
---@option slope number=0.01
---@return orrery.Tensor
local _, orrery = ...

return function(x, options)
  local o = orrery.options("leaky_relu", options, { slope = 0.01 })
  return orrery.where(x:gt(0), x, x * o.slope)
end
