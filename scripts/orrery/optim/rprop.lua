-- SPDX-License-Identifier: Apache-2.0
--
--- optim.rprop(options)
--- Rprop (Riedmiller and Braun, 1993), for whole batches: each weight's own step grows while its gradient keeps its sign.
---@param options? table
---@option lr number|orrery.Schedule=0.01 the first step of each weight
---@option shrink number|orrery.Schedule=0.5 what a step is multiplied by where the sign has changed
---@option grow number|orrery.Schedule=1.2 and where it has not
---@option least number|orrery.Schedule=1e-6 the smallest step
---@option most number|orrery.Schedule=50 the largest step
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...

return orrery.optim.define("rprop", {
  options = { lr = 0.01, shrink = 0.5, grow = 1.2, least = 1e-6, most = 50 },
  states = { "last", "size" },
  update = function(p, g, s, o)
    local turn = s.last:sign() * g:sign() -- their product may be 0 where neither is
    local first = orrery.where(s.size:eq(0), o.lr, s.size)
    local size = orrery.where(turn:gt(0), first * o.grow, orrery.where(turn:lt(0), first * o.shrink, first))
    size = size:maximum(o.least):minimum(o.most)
    g = orrery.where(turn:lt(0), 0, g)
    return p - g:sign() * size, { last = g, size = size }
  end,
})
