-- SPDX-License-Identifier: Apache-2.0
--
-- Adam (Kingma and Ba, 2015); decay is added to the gradient.
local _, orrery = ...
local adam = require "orrery.adam_step"

return orrery.optim.define("adam", {
  options = adam.options, states = adam.states, scalars = adam.scalars,
  update = function(p, g, s, o)
    if o.decay ~= 0 then g = g + p * o.decay end
    local direction, moments = adam.direction(g, s, o)
    return p - direction * o.lr, moments
  end,
})
