-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local twice = orrery.op {
  name = "twice", inputs = 1,
  shape = function(_, x) return x end,
  forward = function(_, x) return x * 2 end,
  backward = function(_, dy) return dy:sum(2) end,
}
local net = nn.linear(2, 3)
local function loss(b) return twice(net(b.x)):sum(2):mean() end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step { x = { { 1.5, 2 } } }
--> grad_shape.lua:11: the backward function returned f32[1] for input 1, which is f32[1,3]: return one of its shape and dtype
