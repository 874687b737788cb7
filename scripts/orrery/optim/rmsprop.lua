-- SPDX-License-Identifier: Apache-2.0
--
--- optim.rmsprop(options)
--- RMSprop (Tieleman and Hinton, 2012): each gradient by the root of a running mean of its squares.
---@param options? table
---@option lr number|orrery.Schedule=0.01 the rate, or a function of the step
---@option alpha number|orrery.Schedule=0.99 how much of the mean stays with each step
---@option eps number|orrery.Schedule=1e-8
---@option decay number|orrery.Schedule=0
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...

return orrery.optim.define("rmsprop", {
  options = { lr = 0.01, alpha = 0.99, eps = 1e-8, decay = 0 },
  states = { "square" },
  update = function(p, g, s, o)
    if o.decay ~= 0 then g = g + p * o.decay end
    local square = s.square * o.alpha + g * g * (1 - o.alpha)
    return p - g / (square:sqrt() + o.eps) * o.lr, { square = square }
  end,
})
