-- SPDX-License-Identifier: Apache-2.0
--
-- nn.dropout(rate): in training, zeroes elements with this probability and scales the rest.
local _, orrery = ...

return orrery.nn.module("dropout", function(_, rate)
  return function(x)
    if rate == 0 then return x end
    return orrery.dropout(x, rate)
  end
end)
