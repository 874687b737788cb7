-- SPDX-License-Identifier: Apache-2.0
--
--- optim.lamb(options)
--- LAMB (You et al., 2020), for large batches: AdamW whose step of each tensor is as long as the tensor, times the rate.
---@param options? table
---@option lr number|orrery.Schedule=1e-3 the rate, or a function of the step
---@option b1 number|orrery.Schedule=0.9
---@option b2 number|orrery.Schedule=0.999
---@option eps number|orrery.Schedule=1e-6
---@option decay number|orrery.Schedule=0.01
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...
local adam = require "orrery.adam_step"
local norm_ratio = require "orrery.norm_ratio"

return orrery.optim.define("lamb", {
  options = { lr = 1e-3, b1 = 0.9, b2 = 0.999, eps = 1e-6, decay = 0.01 },
  states = adam.states, scalars = adam.scalars, counted = true,
  update = function(p, g, s, o)
    local direction, moments = adam.direction(g, s, o)
    if o.decay ~= 0 then direction = direction + p * o.decay end
    local ratio = norm_ratio(p:sumsq():sqrt(), direction:sumsq():sqrt())
    return p - direction * ratio * o.lr, moments
  end,
})
