-- SPDX-License-Identifier: Apache-2.0
--
--- strategy.diloco(options)
--- DiLoCo: replicas train apart with the script's optimizer; every `every` steps an outer one, SGD with
--- Nesterov momentum, takes a step along the mean of what they have changed. APPROX. Strategies behind it in the
--- stack spread each replica over ranks of its own.
---@param options? table
---@option every integer=500 steps between two outer steps
---@option lr number=0.7 of the outer step
---@option momentum number=0.9 of the outer step
---@option size integer=0 replicas; 0: all ranks that are left
---@return orrery.Strategy

-- Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models", 2023 (arXiv:2311.08105).
local orrery = require "orrery"

return orrery.strategy.define {
  name = "diloco", class = "approx", axis = "replica", independent = true,
  options = { every = 500, lr = 0.7, momentum = 0.9, size = 0 },
  states = { anchor = "parameter", velocity = "zeros" },
  synchronize = function(p, s, o, axis)
    local change = (s.anchor - p):all_reduce(axis, "mean")
    s.velocity = s.velocity * o.momentum + change
    s.anchor = s.anchor - (change + s.velocity * o.momentum) * o.lr
    return s.anchor
  end,
}
