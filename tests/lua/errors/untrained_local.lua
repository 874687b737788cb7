-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local Net = nn.module("Net", function(m)
  local hidden = nn.linear(2, 3)
  m.out = nn.linear(3, 1)
  return function(x)
    local h = hidden(x)
    return m.out(h)
  end
end)
local net = Net()
local run = orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, { params = net, optimizer = optim.sgd {} })
run:step { x = { { 1.5, 2 } }, y = { { 1.5 } } }
--> untrained_local.lua:8: linear: the loss reads parameter 'weight' f32[3,2], made at untrained_local.lua:5, which 'params' does not hold, so that it would never be trained: keep its layer as a part of its module (m.name = ...), put it into params, or leave it as it is with nn.freeze
