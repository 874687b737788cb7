-- SPDX-License-Identifier: Apache-2.0
--
--- strategy.easgd(options)
--- Elastic averaging SGD: ranks train apart; every few steps each moves a little towards a common centre, and
--- the centre by the sum of these moves towards them. APPROX.
---@param options? table
---@option every integer=10 steps between two meetings
---@option alpha number=0.1 how far a rank moves towards the centre; alpha times the ranks should stay below 1
---@option size integer=0 ranks that share the batch; 0: all that are left
---@return orrery.Strategy

-- Zhang, Choromanska and LeCun, "Deep Learning with Elastic Averaging SGD", NIPS 2015 (arXiv:1412.6651).
local orrery = require "orrery"

return orrery.strategy.define {
  name = "easgd", class = "approx", independent = true,
  options = { every = 10, alpha = 0.1, size = 0 },
  states = { center = "parameter" },
  synchronize = function(p, s, o, axis)
    local pull = (p - s.center) * o.alpha
    s.center = s.center + pull:all_reduce(axis, "sum")
    return p - pull
  end,
}
