-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local function loss(b)
  return net(b.x):mean() + orrery.grad(net(b.x), { b.x })[1]:mean()
end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step { x = { { 1.5, 2 } } }
--> grad_no_scalar.lua:6: grad: f32[1,1] is no scalar: sum it, as in orrery.grad(y:sum(), ...), which for samples gives each its own derivative, or give the option grad_output
