-- SPDX-License-Identifier: Apache-2.0
--
--- optim.momentum(options)
--- Gradient descent with momentum: v = momentum * v + g; p - lr * v.
---@param options? table
---@option lr number|orrery.Schedule=0.01 the rate, or a function of the step
---@option momentum number|orrery.Schedule=0.9
---@option decay number|orrery.Schedule=0
---@option nesterov boolean=false
---@option groups table={} {{match = pattern or list of paths, frozen =, optimizer = or any option =}, ...}: the first that matches counts
---@return orrery.Optimizer
local _, orrery = ...

return orrery.optim.define("momentum", {
  options = { lr = 0.01, momentum = 0.9, decay = 0, nesterov = false },
  states = { "v" },
  update = function(p, g, s, o)
    if o.decay ~= 0 then g = g + p * o.decay end
    local v = s.v * o.momentum + g
    local direction = o.nesterov and g + v * o.momentum or v
    return p - direction * o.lr, { v = v }
  end,
})
