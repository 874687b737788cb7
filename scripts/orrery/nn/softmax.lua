-- SPDX-License-Identifier: Apache-2.0
--
--- nn.softmax(x)
--- Softmax of the last dim, as a function to put into nn.sequential.
---@param x orrery.Tensor
---@return orrery.Tensor
return function(x) return x:softmax() end
