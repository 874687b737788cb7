-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local batch = { x = { { 1.5, 2 } }, y = { { 1.5 } } }
local function loss(b)
  local y = net(b.x)
  return y:maen()
end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step(batch)
--> tensor_method.lua:8: a Tensor has no method or field 'maen' (did you mean 'mean'?)
