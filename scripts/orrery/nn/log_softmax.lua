-- SPDX-License-Identifier: Apache-2.0
--
--- nn.log_softmax(x)
--- The logarithm of the softmax of the last dim, as a function to put into nn.sequential.
---@param x orrery.Tensor
---@return orrery.Tensor
local in_single = require "orrery.in_single"

return in_single(require "orrery.elementary".log_softmax)
