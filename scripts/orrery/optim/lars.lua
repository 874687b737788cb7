-- SPDX-License-Identifier: Apache-2.0
--
--- optim.lars(options)
--- LARS (You et al., 2017), for large batches: momentum whose gradient of each tensor is as long as the tensor, times
--- `trust`.
---@param options? table
---@option lr number|orrery.Schedule=0.1 the rate, or a function of the step
---@option momentum number|orrery.Schedule=0.9
---@option trust number|orrery.Schedule=0.001
---@option decay number|orrery.Schedule=0
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...
local norm_ratio = require "orrery.norm_ratio"

return orrery.optim.define("lars", {
  options = { lr = 0.1, momentum = 0.9, trust = 0.001, decay = 0 },
  states = { "v" },
  update = function(p, g, s, o)
    local size = p:sumsq():sqrt()
    local trust = norm_ratio(size, g:sumsq():sqrt() + size * o.decay) * o.trust
    if o.decay ~= 0 then g = g + p * o.decay end
    local v = s.v * o.momentum + g * trust * o.lr
    return p - v, { v = v }
  end,
})
