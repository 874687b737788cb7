-- SPDX-License-Identifier: Apache-2.0
--
--- nn.gelu(x)
--- GELU in its tanh form, as a function to put into nn.sequential.
---@param x orrery.Tensor
---@return orrery.Tensor
return function(x) return x:gelu() end
