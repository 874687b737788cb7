-- SPDX-License-Identifier: Apache-2.0
--
-- SparseLoCo, a strategy in a user's file: replicas train apart as under strategy.diloco; every `every` steps
-- each sends of what it has changed only the largest elements, and keeps the rest, decayed, for the next time.
--
--   strategy = { require "strategies.sparseloco" { every = 30, fraction = 50 } }
--
-- Sarfi et al., "Communication Efficient LLM Pre-training with SparseLoCo", 2025 (arXiv:2508.15706).
local orrery = require "orrery"

return orrery.strategy.define {
  name = "sparseloco", class = "approx", axis = "peer", independent = true,
  options = { every = 30, fraction = 50, decay = 0.95, lr = 1.0, size = 0 },
  states = { anchor = "parameter", residual = { init = "zeros", varying = true, leave = "mean" } },
  synchronize = function(p, s, o, axis)
    local flat = (s.residual * o.decay + (s.anchor - p)):reshape(-1)
    local _, at = flat:abs():topk(math.max(1, flat.shape[1] // o.fraction))
    local sent = flat:take(at)
    s.residual = flat:put(at, 0):reshape(p.shape)
    local sum = orrery.zeros_like(flat):scatter_add(at:all_gather(axis), sent:all_gather(axis))
    s.anchor = s.anchor - sum:reshape(p.shape) * (o.lr / orrery.axis_size(axis))
    return s.anchor
  end,
}
