-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local Inner = nn.module("Inner", function(m)
  m.fc = nn.linear(4, 1)
  return function(x)
    return m.fc(x)
  end
end)
local Net = nn.module("Net", function(m)
  m.a, m.inner = nn.linear(2, 3), Inner()
  return function(x)
    return m.inner(m.a(x))
  end
end)
local net = Net()
orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, { params = net, optimizer = optim.sgd {} })
  :step { x = { { 1.5, 2 } }, y = { { 1.5 } } }
--> tail_call.lua:7: Net.inner.fc: matmul: inner sizes differ: [1,3] x [1,4]
