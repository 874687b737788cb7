-- SPDX-License-Identifier: Apache-2.0
--
-- Fully sharded data parallelism by rows, as a strategy of one's own: each parameter is cut by itself, along its first
-- dim, so that a rank has whole rows of every matrix. Those of a layer are gathered in one exchange; gradients leave
-- one by one. (fsdp.lua cuts a layer's parameters as one list, wherever the middle is: its exchanges copy nothing.)
--
--   strategy = { strategy.data {}, require "strategies.fsdp_rows" {} }
--
-- PyTorch's fully_shard does so: https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html.
local strategy = require("orrery").strategy
local sharded = require "strategies.sharded"

return strategy.define {
  name = "fsdp_rows", class = "exact", requires = "shares of the batch",
  provides = "sharded state", conflicts = "sharded state", predict = strategy.traffic.pieces,
  options = { prefetch = 1, reshard = true, each = false },
  transform = function(draft, o)
    sharded(draft, { prefetch = o.prefetch, reshard = o.reshard, each = o.each, rows = true }, function(step, p, group)
      return step:op("unshard", { p }, { group = group, each = o.each and 1 or 0 })
    end)
  end,
}
