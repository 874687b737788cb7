-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 2)
local function loss(b)
  local x = net(b.x)
  local y = orrery.attention(x, x, x, { heads = 1, dropout = 0.1 })
  local slope = orrery.grad((y * y):sum(), { x })[1]
  return (slope * slope):mean()
end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step { x = { { { 1.5, 2 } } } }
--> grad_no_second.lua:7: attention with dropout has no second derivative: leave its dropout out, or write it with matmul, softmax and dropout
