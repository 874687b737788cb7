-- SPDX-License-Identifier: Apache-2.0
--
--- strategy.average(options)
--- Local SGD: ranks share the batch but train apart, and every few steps their weights become the mean. APPROX:
--- with every = 1, plain SGD and even parts of the batch it is data parallelism up to rounding.
---@param options? table
---@option every integer=1 steps between two averages
---@option states boolean=false optimizer states and buffers become their means as well
---@option size integer=0 ranks that share the batch; 0: all that are left
---@return orrery.Strategy

-- McDonald et al., NAACL 2010; Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019.
local orrery = require "orrery"

local function average_states(draft)
  for _, s in ipairs(draft:values "state") do
    if s.dtype ~= "i64" then draft:update(draft:tensor(s), draft:tensor(s):all_reduce("average", "mean")) end
  end
end

return orrery.strategy.define {
  name = "average", class = "approx", independent = true, options = { every = 1, states = false, size = 0 },
  synchronize = function(p, _, _, axis) return p:all_reduce(axis, "mean") end,
  transform = function(draft, o) if o.states then draft:every(o.every, 1, average_states) end end,
}
