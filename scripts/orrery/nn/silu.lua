-- SPDX-License-Identifier: Apache-2.0
--
--- nn.silu(x)
--- x * sigmoid(x), as a function to put into nn.sequential.
---@param x orrery.Tensor
---@return orrery.Tensor
return function(x) return x:silu() end
