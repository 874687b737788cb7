-- SPDX-License-Identifier: Apache-2.0
--
-- Stochastic gradient descent: p - lr * (g + decay * p).
local _, orrery = ...

return orrery.optim.define("sgd", {
  options = { lr = 0.01, decay = 0 },
  update = function(p, g, _, o)
    if o.decay ~= 0 then g = g + p * o.decay end
    return p - g * o.lr
  end,
})
