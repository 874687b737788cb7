-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local batch = { x = { { 1.5, 2 } }, y = { { 1.5 } } }
orrery.compile(function(b) net(b.x) end, { params = net, optimizer = optim.sgd {} }):step(batch)
--> loss_nil.lua:6: the loss function returned nil, expected a tensor
