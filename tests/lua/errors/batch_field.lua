-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local function loss(b)
  local h = net(b.inputs)
  return nn.mse(h, b.y)
end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step { x = { { 1.5, 2 } }, y = { { 0.0 } } }
--> batch_field.lua:6: the batch has no 'inputs'; it has x, y
