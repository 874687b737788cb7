-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local function loss(b)
  local value = net(b.x):tanh():mean():exp()
  return value + orrery.grad(value, { net.weight })[1]:sum()
end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step { x = { { 1.5, 2 } } }
--> grad_of_bent_mean.lua:7: grad: grad_of_bent_mean.lua:6: 'exp' makes a nonlinear function of sums over the batch here, and grad's result would be one before all microbatches are done: apply it to each sample before the mean, or to what grad returns
