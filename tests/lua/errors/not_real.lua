-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, { params = net, optimizer = optim.sgd {} })
  :step { x = { { 1, 2 } }, y = { { 1.5 } } }
--> not_real.lua:5: linear: matmul: needs two real tensors of one dtype, not i64 and f32; whole numbers in Lua make i64: write 1.0 for 1, orrery.tensor(values, "f32") or x:cast("f32")
