-- SPDX-License-Identifier: Apache-2.0
--
--- nn.gelu_exact(x)
--- GELU as it is defined, x times the normal distribution function of x: that of BERT. nn.gelu is its tanh form.
---@param x orrery.Tensor
---@return orrery.Tensor
local in_single = require "orrery.in_single"

return in_single(function(x) return x * 0.5 * ((x * math.sqrt(0.5)):erf() + 1) end)
