-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local Net = nn.module("Net", function()
  local only = nn.linear(2, 1)
  return function(x) return only(x) end
end)
local net = Net()
orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, { params = net, optimizer = optim.sgd {} })
--> nothing_trained.lua:9: compile: the model has no parameters: parts that are kept in m.name = ... count
