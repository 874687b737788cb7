-- SPDX-License-Identifier: Apache-2.0
--
--- optim.adamax(options)
--- AdaMax (Kingma and Ba, 2015): Adam that divides by the largest gradient, which fades, instead of by a mean of squares.
---@param options? table
---@option lr number|orrery.Schedule=2e-3 the rate, or a function of the step
---@option b1 number|orrery.Schedule=0.9
---@option b2 number|orrery.Schedule=0.999 how much of the largest gradient stays with each step
---@option eps number|orrery.Schedule=1e-8
---@option decay number|orrery.Schedule=0
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...
local adam = require "orrery.adam_step"

return orrery.optim.define("adamax", {
  options = { lr = 2e-3, b1 = 0.9, b2 = 0.999, eps = 1e-8, decay = 0 },
  states = { "m", "u" }, scalars = adam.scalars, counted = true,
  update = function(p, g, s, o)
    if o.decay ~= 0 then g = g + p * o.decay end
    local m, u = s.m * o.b1 + g * (1 - o.b1), (s.u * o.b2):maximum(g:abs() + o.eps)
    return p - m * adam.first_correction(o) / u * o.lr, { m = m, u = u }
  end,
})
