-- SPDX-License-Identifier: Apache-2.0
--
--- optim.adam(options)
--- Adam (Kingma and Ba, 2015); decay is added to the gradient.
---@param options? table
---@option lr number|orrery.Schedule=1e-3 the rate, or a function of the step
---@option b1 number|orrery.Schedule=0.9
---@option b2 number|orrery.Schedule=0.999
---@option eps number|orrery.Schedule=1e-8
---@option decay number|orrery.Schedule=0
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...
local adam = require "orrery.adam_step"

return orrery.optim.define("adam", {
  options = adam.options, states = adam.states, scalars = adam.scalars, counted = true,
  update = function(p, g, s, o)
    if o.decay ~= 0 then g = g + p * o.decay end
    local direction, moments = adam.direction(g, s, o)
    return p - direction * o.lr, moments
  end,
})
