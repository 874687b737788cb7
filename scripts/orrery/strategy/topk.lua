-- SPDX-License-Identifier: Apache-2.0
--
--- strategy.topk(options)
--- Sparse gradients: of every gradient each rank sends only the largest elements and keeps the rest for the
--- next steps (error feedback). APPROX; with fraction = 1 it is the dense sum.
---@param options? table
---@option fraction integer=100 one element of so many is sent, at least one of each tensor
---@option size integer=0 ranks that share the batch; 0: all that are left
---@return orrery.Strategy

-- Aji and Heafield, EMNLP 2017; Lin et al., "Deep Gradient Compression", ICLR 2018 (arXiv:1712.01887).
local orrery = require "orrery"

return orrery.strategy.define {
  name = "topk", class = "approx",
  options = { fraction = 100, size = 0 },
  states = { residual = { init = "zeros", varying = true, leave = "sum" } },
  exchange = function(g, s, o, axis)
    local flat = (g + s.residual):reshape(-1)
    local _, at = flat:abs():topk(math.max(1, flat.shape[1] // o.fraction))
    local sent = flat:take(at)
    s.residual = flat:put(at, 0):reshape(g.shape)
    local all = orrery.zeros_like(flat):scatter_add(at:all_gather(axis), sent:all_gather(axis))
    return all:reshape(g.shape)
  end,
}
