-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 2)
local function loss(b)
  local y = net(b.x)
  return nn.mse(y, b.y)
end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step { x = { { 1.5, 2 } }, y = { { 1.5, 2, 3 }, } }
--> tail_call_loss.lua:7: mse: x and y are [1,2] and [1,3]: give tensors of one shape
