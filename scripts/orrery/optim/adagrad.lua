-- SPDX-License-Identifier: Apache-2.0
--
--- optim.adagrad(options)
--- Adagrad (Duchi, Hazan and Singer, 2011): each weight's own rate falls with the squares of all its gradients so far.
---@param options? table
---@option lr number|orrery.Schedule=0.01 the rate, or a function of the step
---@option decay number|orrery.Schedule=0
---@option eps number|orrery.Schedule=1e-10
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...

return orrery.optim.define("adagrad", {
  options = { lr = 0.01, decay = 0, eps = 1e-10 },
  states = { "sum" },
  update = function(p, g, s, o)
    if o.decay ~= 0 then g = g + p * o.decay end
    local sum = s.sum + g * g
    return p - g / (sum:sqrt() + o.eps) * o.lr, { sum = sum }
  end,
})
