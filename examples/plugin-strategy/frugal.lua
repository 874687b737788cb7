-- SPDX-License-Identifier: Apache-2.0
--
-- The strategy of frugal.cpp: of every element of a list of modules backward computes again what is cheap.
local strategy = require "orrery".strategy

local costly = { matmul = true, attention = true }

return strategy.define {
  name = "frugal_lua", class = "exact",
  provides = "recomputation", conflicts = "recomputation",
  transform = function(draft)
    for _, value in ipairs(draft:values "activation") do
      local element = value.phase == "forward" and value.region:match "^[^.]+%.(.-%.%d+)%f[%.%z]"
      if element then draft:life(value, element, costly[value.op] and "keep" or "recompute") end
    end
  end,
}
