-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local function loss(b)
  local slope = orrery.grad(net(b.x):tanh():mean(), { b.x })[1]
  return (slope * slope):mean()
end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step { x = { { 1.5, 2 } } }
--> grad_mean_by_samples.lua:6: grad: value 1 f32[1,2] is one of each sample, and the derivative of a mean over the batch is divided by the weight of all samples, which is known only after all microbatches; differentiate the samples' sum, with :sum() in place of :mean()
