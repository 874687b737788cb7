-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local function loss(b)
  local value = net(b.x):tanh():mean()
  return value + orrery.grad(value, { net.weight })[1]:sumsq()
end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step { x = { { 1.5, 2 } } }
--> grad_nonlinear.lua:7: sumsq: a mean over the batch is known only after all microbatches, so a loss may hold sums and multiples of it, not a nonlinear function; apply 'sumsq' to each sample before the mean, or to the result of the step
