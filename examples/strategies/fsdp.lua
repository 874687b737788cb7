-- SPDX-License-Identifier: Apache-2.0
--
-- Fully sharded data parallelism as a strategy of one's own: what strategy.fsdp does, on the calls that any strategy
-- has. Parameters lie in pieces, each layer is gathered where it is used, and gradients end as pieces.
--
--   strategy = { strategy.data {}, require "strategies.fsdp" { prefetch = 1 } }
--
-- Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", VLDB 2023 (arXiv:2304.11277).
local strategy = require("orrery").strategy
local sharded = require "strategies.sharded"

return strategy.define {
  name = "my_fsdp", class = "exact", requires = "shares of the batch",
  provides = "sharded state", conflicts = "sharded state", predict = strategy.traffic.pieces,
  options = { prefetch = 1, reshard = true, each = false },
  transform = function(draft, o)
    sharded(draft, o, function(step, p, group)
      return step:op("unshard", { p }, { group = group, each = o.each and 1 or 0 })
    end)
  end,
}
