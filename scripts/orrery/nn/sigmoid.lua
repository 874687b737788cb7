-- SPDX-License-Identifier: Apache-2.0
--
--- nn.sigmoid(x)
--- 1 / (1 + exp(-x)), as a function to put into nn.sequential.
---@param x orrery.Tensor
---@return orrery.Tensor
return function(x) return x:sigmoid() end
