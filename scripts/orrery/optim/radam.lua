-- SPDX-License-Identifier: Apache-2.0
--
--- optim.radam(options)
--- RAdam (Liu et al., 2020): Adam whose first steps, of which squares tell too little, are momentum's, and whose later ones
--- are rectified.
---@param options? table
---@option lr number|orrery.Schedule=1e-3 the rate, or a function of the step
---@option b1 number|orrery.Schedule=0.9
---@option b2 number|orrery.Schedule=0.999
---@option eps number|orrery.Schedule=1e-8
---@option decay number|orrery.Schedule=0
---@option decoupled boolean=false decay of the weights themselves, as adamw's
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...
local adam = require "orrery.adam_step"

-- How many gradients the mean of squares is about of, at most: 2 / (1 - b2) - 1.
local function most(b2) return 2 / (1 - b2) - 1 end

local function scalars(step, o)
  local found, power = adam.scalars(step, o), o.b2 ^ step
  found.most = most(o.b2)
  found.length = found.most - 2 * step * power / (1 - power)
  found.offset = found.most + 2 / math.log(o.b2)
  return found
end

-- most - 2 n b2^n / (1 - b2^n) after n updates of the parameter. Where that is a small difference, and for parameters
-- that have not taken every step, it is offset + n - 2 n (coth(y / 2) / 2 - 1 / y) with y = -n log(b2).
local function length(o)
  local y = o.count * (o.r2 * 2)
  local square = y * y
  local near = y * (1 / 12 - square * (1 / 720 - square * (1 / 30240)))
  local part = y:lt(0.1):select(near, 0.5 / (y * 0.5):tanh() - 1 / y)
  return o.count:eq(o.step):select(o.length, o.offset + o.count - o.count * part * 2)
end

return orrery.optim.define("radam", {
  options = { lr = 1e-3, b1 = 0.9, b2 = 0.999, eps = 1e-8, decay = 0, decoupled = false },
  states = adam.states, scalars = scalars, counted = true,
  update = function(p, g, s, o)
    p, g = adam.decayed(p, g, o)
    local m, v = adam.moments(g, s, o)
    local n = length(o)
    local rectified = n:gt(5)
    local sure = rectified:select(n, 5) -- keeps roots of negative numbers away
    local factor = ((sure - 4) * (sure - 2) / sure * (o.most / ((o.most - 4) * (o.most - 2)))):sqrt()
    local root = adam.second_correction(o):rsqrt()
    local direction = rectified:select(factor * root / (v:sqrt() + o.eps), 1)
    return p - m * adam.first_correction(o) * direction * o.lr, { m = m, v = v }
  end,
})
