-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local function loss(b)
  local value = net(b.x):mean()
  return value + orrery.grad(value, { net.weight, net(b.x) })[1]:sum()
end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step { x = { { 1.5, 2 } } }
--> grad_unused.lua:7: grad: what is differentiated does not depend on value 2 f32[1,1] by way of real numbers; leave it out, or write zeros where zeros are meant
