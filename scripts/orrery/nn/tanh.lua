-- SPDX-License-Identifier: Apache-2.0
--
--- nn.tanh(x)
--- Hyperbolic tangent, as a function to put into nn.sequential.
---@param x orrery.Tensor
---@return orrery.Tensor
return function(x) return x:tanh() end
