-- SPDX-License-Identifier: Apache-2.0
-- Scalars of a step, and which group a parameter belongs to.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.sequential { nn.linear(2, 2), nn.layernorm(2) }
local o = optim.adamw {
  lr = function(step) return step * 0.1 end, b1 = 0.5, decay = 0.1,
  groups = { { match = { "*.bias", "2.*" }, decay = 0, lr = 0.5 }, { match = "*.weight", frozen = true } },
}
local list = orrery.parameters(net)
assert(o:group_of(list[1]) == 1 and o:group_of(list[2]) == 2 and o:group_of(list[4]) == 1)
assert(o:freezes(list[2]) and not o:freezes(list[1]))
local scalars = o:scalars(2)
assert(math.abs(scalars["optim.0.lr"] - 0.2) < 1e-12 and scalars["optim.1.lr"] == 0.5)
assert(math.abs(scalars["optim.0.c1"] - 1 / 0.75) < 1e-12)
