-- SPDX-License-Identifier: Apache-2.0
--
--- nn.flatten(x)
--- Each sample's elements as one row, [batch, -1]; a function to put into nn.sequential.
---@param x orrery.Tensor
---@return orrery.Tensor
return function(x) return x:reshape(x.shape[1], -1) end
