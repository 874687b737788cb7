-- SPDX-License-Identifier: Apache-2.0
--
--- optim.nadam(options)
--- NAdam (Dozat, 2016): Adam with Nesterov's momentum, which grows to b1 in the first steps.
---@param options? table
---@option lr number|orrery.Schedule=2e-3 the rate, or a function of the step
---@option b1 number|orrery.Schedule=0.9
---@option b2 number|orrery.Schedule=0.999
---@option eps number|orrery.Schedule=1e-8
---@option decay number|orrery.Schedule=0
---@option decoupled boolean=false decay of the weights themselves, as adamw's
---@option momentum_decay number|orrery.Schedule=4e-3 momentum is b1 (1 - 0.96^(n momentum_decay) / 2) with the n-th update
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...
local adam = require "orrery.adam_step"

-- The momentum of the n-th update.
local function momentum(n, o) return (1 - (n * o.momentum_decay * math.log(0.96)):exp() * 0.5) * o.b1 end

-- `rest` is what 1 is more than the product of all momenta so far.
return orrery.optim.define("nadam", {
  options = { lr = 2e-3, b1 = 0.9, b2 = 0.999, eps = 1e-8, decay = 0, decoupled = false, momentum_decay = 4e-3 },
  states = { "m", "v", "rest" }, shapes = { rest = function() return {} end }, scalars = adam.scalars, counted = true,
  update = function(p, g, s, o)
    p, g = adam.decayed(p, g, o)
    local m, v = adam.moments(g, s, o)
    local now, next_one = momentum(o.count, o), momentum(o.count + 1, o)
    local rest = 1 - (1 - s.rest) * now
    local direction = g * ((1 - now) / rest) + m * (next_one / (1 - (1 - rest) * next_one))
    local size = (v * adam.second_correction(o)):sqrt() + o.eps
    return p - direction / size * o.lr, { m = m, v = v, rest = rest }
  end,
})
