-- SPDX-License-Identifier: Apache-2.0
--
--- strategy.average(options)
--- Local SGD: ranks share the batch but train alone, each on gradients of its own part, and every few
--- steps their weights become the mean. APPROX: with every = 1, plain SGD and even parts it is data
--- parallelism up to rounding.
---@param options? table
---@option every integer=1 steps between two averages
---@option states boolean=false optimizer states are averaged as well
---@option size integer=0 ranks that share the batch; 0: all that are left
---@return orrery.Strategy

-- McDonald et al., NAACL 2010; Stich, "Local SGD Converges Fast and Communicates Little", ICLR 2019.
local _, orrery = ...

return orrery.strategy.define {
  name = "average", class = "approx",
  options = {
    every = 1,      -- steps between two averages
    states = false, -- optimizer states are averaged as well
    size = 0,       -- ranks that share the batch; 0: all that are left
  },
  provides = "a data axis,independent ranks", conflicts = "a data axis,an order of microbatches",

  transform = function(draft, o)
    local ranks, bytes = draft:axis("average", o.size), 0
    for _, field in ipairs(draft:values "batch") do draft:place(field, "average", 1) end
    draft:average("average", o.every, o.states)
    for _, parameter in ipairs(draft:values "param") do bytes = bytes + parameter.bytes end
    draft:remark(("every %d steps weights of %d bytes are averaged: a rank sends about %d"):format(
      o.every, bytes, 2 * (ranks - 1) * bytes // ranks))
  end,

  -- What every step sends: the loss.
  predict = orrery.strategy.traffic.sum,
}
