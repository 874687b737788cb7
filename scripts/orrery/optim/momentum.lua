-- SPDX-License-Identifier: Apache-2.0
--
-- Gradient descent with momentum: v = momentum * v + g; p - lr * v.
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
