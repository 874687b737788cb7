-- SPDX-License-Identifier: Apache-2.0
--
--- nn.mish(x)
--- x tanh(log(1 + exp(x))), as a function to put into nn.sequential.
---@param x orrery.Tensor
---@return orrery.Tensor

-- Misra, 2020 (arXiv:1908.08681).
local in_single = require "orrery.in_single"
local softplus = require "orrery.elementary".softplus

return in_single(function(x) return x * softplus(x):tanh() end)
