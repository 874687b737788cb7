-- SPDX-License-Identifier: Apache-2.0
--
--- nn.dropout(rate)
--- A layer that in training zeroes elements with this probability and scales the rest.
---@param rate number
---@return orrery.Module
local _, orrery = ...

return orrery.nn.module("dropout", function(_, rate)
  return function(x)
    if rate == 0 then return x end
    return orrery.dropout(x, rate)
  end
end)
