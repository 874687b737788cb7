-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 3)
local function loss(b) return net(b.x):sum(2):mean():vary "data" end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step { x = { { 1.5, 2 } } }
--> axis_in_model.lua:5: there is no axis 'data' here: strategies make axes, for their hooks; over all samples "batch" is one
