-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local options = { params = net, optimizer = optim.adamw { lr = 1e-3 }, numerics = "quick" }
orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, options)
--> compile_numerics.lua:6: compile: numerics is 'quick': write "exact" or "fast"
