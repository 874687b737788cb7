-- SPDX-License-Identifier: Apache-2.0
--
--- optim.lion(options)
--- Lion (Chen et al., 2023): steps of one size, by the sign of momentum; half of Adam's states.
---@param options? table
---@option lr number|orrery.Schedule=1e-4 the rate, or a function of the step
---@option b1 number|orrery.Schedule=0.9 how much of the momentum the direction takes
---@option b2 number|orrery.Schedule=0.99 how much of the momentum stays
---@option decay number|orrery.Schedule=0 of the weights themselves
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...

return orrery.optim.define("lion", {
  options = { lr = 1e-4, b1 = 0.9, b2 = 0.99, decay = 0 },
  states = { "m" },
  update = function(p, g, s, o)
    local direction = (s.m * o.b1 + g * (1 - o.b1)):sign()
    if o.decay ~= 0 then direction = direction + p * o.decay end
    return p - direction * o.lr, { m = s.m * o.b2 + g * (1 - o.b2) }
  end,
})
