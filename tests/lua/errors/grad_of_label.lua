-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local function loss(b)
  return orrery.grad(net(b.x):sum(), { b.label })[1]:mean()
end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step { x = { { 1.5, 2 } }, label = { 1 } }
--> grad_of_label.lua:6: grad: value 1 is i64[1]: only by real tensors is there a derivative
