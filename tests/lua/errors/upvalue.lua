-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local batch = { x = { { 1.5, 2 } }, y = { { 1.5 } } }
local scale = 1
local function loss(b) return nn.mse(net(b.x) * scale, b.y) end
local run = orrery.compile(loss, { params = net, optimizer = optim.sgd {} })
run:step(batch)
scale = 2
run:step(batch)
--> upvalue.lua:11: 'scale' of the function at upvalue.lua:7 was 1 when the step was traced and is 2 now; a trace keeps the first value: make it an orrery.input, or compile again
