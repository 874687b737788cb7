-- SPDX-License-Identifier: Apache-2.0
--
-- Adagrad (Duchi, Hazan and Singer, 2011): each weight's own rate falls with the squares of all its
-- gradients so far.
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
