-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local Net = nn.module("Net", function(m)
  m.inner = nn.sequential { nn.linear(2, 1), function(x) return x:tahn() end }
  return function(x)
    local y = m.inner(x)
    return y
  end
end)
local net = Net()
local run = orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, { params = net, optimizer = optim.sgd {} })
run:step { x = { { 1.5, 2 } }, y = { { 1.5 } } }
--> region.lua:5: Net.inner: a Tensor has no method or field 'tahn' (did you mean 'tanh'?)
