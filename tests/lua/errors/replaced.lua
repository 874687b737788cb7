-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.sequential { nn.linear(2, 1) }
local batch = { x = { { 1.5, 2 } }, y = { { 1.5 } } }
local run = orrery.compile(function(b) return nn.mse(net(b.x), b.y) end,
  { params = net, optimizer = optim.sgd {} })
run:step(batch)
net[1].weight = orrery.parameter { 1, 2 }
run:step(batch)
--> replaced.lua:10: '1.weight' of the model was replaced after it was compiled, which goes on with the old one; change a parameter with 1.weight:write(value), or compile again
