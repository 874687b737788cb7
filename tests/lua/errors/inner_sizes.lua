-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local batch = { x = { { 1.5, 2 } }, y = { { 1.5 } } }
local Net = nn.module("Net", function(m)
  m.a, m.b = nn.linear(2, 3), nn.linear(4, 1)
  return function(x)
    local y = m.b(m.a(x))
    return y
  end
end)
net = Net()
orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, { params = net, optimizer = optim.sgd {} }):step(batch)
--> inner_sizes.lua:9: Net.b: matmul: inner sizes differ: [1,3] x [1,4]
