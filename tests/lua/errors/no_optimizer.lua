-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local batch = { x = { { 1.5, 2 } }, y = { { 1.5 } } }
orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, { params = net })
--> no_optimizer.lua:6: compile: optimizer is missing: for example optim.adamw{lr = 1e-3}
