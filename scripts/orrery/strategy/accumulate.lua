-- SPDX-License-Identifier: Apache-2.0
--
--- strategy.accumulate(options)
--- Gradient accumulation: a rank computes its microbatches one after another, forward and backward, and
--- adds their gradients, so that the activations of one are alive at a time. EXACT: gradients are added
--- in the canonical tree, at the price of one accumulator for every level of it that waits.
---@param options? table it has none
---@return orrery.Strategy
local orrery = require "orrery"

return orrery.strategy.define {
  name = "accumulate", class = "exact",
  provides = "an order of microbatches", conflicts = "an order of microbatches",
  transform = function(draft) draft:loop() end,
}
