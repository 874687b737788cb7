-- SPDX-License-Identifier: Apache-2.0
--
-- AdamW (Loshchilov and Hutter, 2019): Adam with decay applied to the weights themselves.
local _, orrery = ...
local adam = require "orrery.adam_step"

local options = { decay = 0.01 }
for name, value in pairs(adam.options) do
  if options[name] == nil then options[name] = value end
end

return orrery.optim.define("adamw", {
  options = options, states = adam.states, scalars = adam.scalars,
  update = function(p, g, s, o)
    local direction, moments = adam.direction(g, s, o)
    if o.decay ~= 0 then direction = direction + p * o.decay end
    return p - direction * o.lr, moments
  end,
})
