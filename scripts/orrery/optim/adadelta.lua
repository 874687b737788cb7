-- SPDX-License-Identifier: Apache-2.0
--
--- optim.adadelta(options)
--- Adadelta (Zeiler, 2012): steps of the size that past steps had, by a running mean of squared gradients.
---@param options? table
---@option lr number|orrery.Schedule=1 the rate, or a function of the step
---@option rho number|orrery.Schedule=0.9 how much of both means stays with each step
---@option eps number|orrery.Schedule=1e-6
---@option decay number|orrery.Schedule=0
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...

return orrery.optim.define("adadelta", {
  options = { lr = 1, rho = 0.9, eps = 1e-6, decay = 0 },
  states = { "square", "moved" },
  update = function(p, g, s, o)
    if o.decay ~= 0 then g = g + p * o.decay end
    local square = s.square * o.rho + g * g * (1 - o.rho)
    local step = (s.moved + o.eps):sqrt() / (square + o.eps):sqrt() * g
    return p - step * o.lr, { square = square, moved = s.moved * o.rho + step * step * (1 - o.rho) }
  end,
})
