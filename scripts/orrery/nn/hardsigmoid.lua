-- SPDX-License-Identifier: Apache-2.0
--
--- nn.hardsigmoid(x)
--- (x + 3) / 6 between -3 and 3, 0 below and 1 above, as a function to put into nn.sequential.
---@param x orrery.Tensor
---@return orrery.Tensor
local _, orrery = ...
local in_single = require "orrery.in_single"

return in_single(function(x)
  return orrery.where(x:le(-3), 0, orrery.where(x:ge(3), 1, (x + 3) / 6))
end)
