-- SPDX-License-Identifier: Apache-2.0
--
--- nn.identity(x)
--- x as it is, as a function to put into nn.sequential.
---@param x orrery.Tensor
---@return orrery.Tensor
return function(x) return x end
