-- SPDX-License-Identifier: Apache-2.0
--
--- nn.relu(x)
--- max(x, 0), as a function to put into nn.sequential.
---@param x orrery.Tensor
---@return orrery.Tensor
return function(x) return x:relu() end
