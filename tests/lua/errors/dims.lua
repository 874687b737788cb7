-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local batch = { x = { { 1.5, 2 } }, y = { { 1.5 } } }
orrery.compile(function(b) return (net(b.x) - b.y):mean(3) end, { params = net, optimizer = optim.sgd {} }):step(batch)
--> dims.lua:6: dim 3 does not exist: the tensor has 2 dims, counted 1..2 or -1..-2
