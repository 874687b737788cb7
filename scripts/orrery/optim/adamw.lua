-- SPDX-License-Identifier: Apache-2.0
--
--- optim.adamw(options)
--- AdamW (Loshchilov and Hutter, 2019): Adam with decay applied to the weights themselves.
---@param options? table
---@option lr number|orrery.Schedule=1e-3 the rate, or a function of the step
---@option b1 number|orrery.Schedule=0.9
---@option b2 number|orrery.Schedule=0.999
---@option eps number|orrery.Schedule=1e-8
---@option decay number|orrery.Schedule=0.01
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...
local adam = require "orrery.adam_step"

local options = { decay = 0.01 }
for name, value in pairs(adam.options) do
  if options[name] == nil then options[name] = value end
end

return orrery.optim.define("adamw", {
  options = options, states = adam.states, scalars = adam.scalars, counted = true,
  update = function(p, g, s, o)
    local direction, moments = adam.direction(g, s, o)
    if o.decay ~= 0 then direction = direction + p * o.decay end
    return p - direction * o.lr, moments
  end,
})
