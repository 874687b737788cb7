-- SPDX-License-Identifier: Apache-2.0
--
--- optim.sgd(options)
--- Stochastic gradient descent: p - lr * (g + decay * p).
---@param options? table
---@option lr number|orrery.Schedule=0.01 the rate, or a function of the step
---@option decay number|orrery.Schedule=0
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...

return orrery.optim.define("sgd", {
  options = { lr = 0.01, decay = 0 },
  update = function(p, g, _, o)
    if o.decay ~= 0 then g = g + p * o.decay end
    return p - g * o.lr
  end,
})
