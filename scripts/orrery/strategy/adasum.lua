-- SPDX-License-Identifier: Apache-2.0
--
--- strategy.adasum(options)
--- Gradients combined by what they have in common: two that are orthogonal are added, two that are parallel
--- averaged, pair by pair up a binary tree. APPROX; the number of ranks is a power of two.
---@param options? table
---@option size integer=0 ranks that share the batch; 0: all that are left
---@return orrery.Strategy

-- Maleki et al., "Scaling Distributed Training with Adaptive Summation", MLSys 2021 (arXiv:2006.02924).
local orrery = require "orrery"

return orrery.strategy.define {
  name = "adasum", class = "approx",
  options = { size = 0 },
  exchange = function(g, _, _, axis)
    local ranks = orrery.axis_size(axis)
    if ranks & (ranks - 1) ~= 0 then
      orrery.fail(("strategy.adasum: %d ranks are no power of two: choose another size"):format(ranks))
    end
    local flat = g:reshape(-1) * ranks  -- the gradient of a mean over the rank's own samples
    local n, each = flat.shape[1], (flat.shape[1] + ranks - 1) // ranks
    -- Each rank has its share of all gradients; dot products are summed over the shares.
    local all = flat:pad(1, each * ranks):reshape(ranks, each):all_to_all(axis)
    while all.shape[1] > 1 do
      local pairs_of = all:reshape(all.shape[1] // 2, 2, each)
      local a, b = pairs_of:split(2, { 1, 1 })
      local function dot(x, y) return (x * y):sum(3, { keep = true }):all_reduce(axis) end
      local ab = dot(a, b)
      local function part(x) return x * (1 - ab / (dot(x, x) * 2):maximum(1e-30)) end
      all = (part(a) + part(b)):reshape(-1, each)
    end
    return all:reshape(-1):all_gather(axis):slice(1, 1, n):reshape(g.shape)
  end,
}
