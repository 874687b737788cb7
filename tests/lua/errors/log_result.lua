-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(1, 1)
local run = orrery.compile(function(b) return nn.mse(net(b.x), b.x) end, { params = net, optimizer = optim.sgd {} })
orrery.log("loss %f", run:step { x = { { 1.5 } } })
--> log_result.lua:6: bad argument #1 to 'format' (number expected, got StepResult); take the loss by :mean(), other results by :get(name)
