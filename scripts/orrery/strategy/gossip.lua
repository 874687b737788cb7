-- SPDX-License-Identifier: Apache-2.0
--
--- strategy.gossip(options)
--- Gossip averaging: ranks train apart; every few steps each takes the mean of its weights and those of another
--- rank, one further away each time, round in a ring. The mean over all ranks stays what it is. APPROX.
---@param options? table
---@option every integer=1 steps between two exchanges
---@option size integer=0 ranks that share the batch; 0: all that are left
---@return orrery.Strategy

-- Lian et al., "Can Decentralized Algorithms Outperform Centralized Algorithms?", NIPS 2017 (arXiv:1705.09056).
local orrery = require "orrery"

return orrery.strategy.define {
  name = "gossip", class = "approx", independent = true,
  options = { every = 1, size = 0 },
  rounds = function(_, ranks) return math.max(1, ranks - 1) end,
  synchronize = function(p, _, _, axis, round) return (p + p:ppermute(axis, { hop = round })) * 0.5 end,
}
