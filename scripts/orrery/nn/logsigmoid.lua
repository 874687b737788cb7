-- SPDX-License-Identifier: Apache-2.0
--
--- nn.logsigmoid(x)
--- log(1 / (1 + exp(-x))), as a function to put into nn.sequential.
---@param x orrery.Tensor
---@return orrery.Tensor
local in_single = require "orrery.in_single"
local softplus = require "orrery.elementary".softplus

return in_single(function(x) return -softplus(-x) end)
