-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.freeze(nn.linear(2, 1))
local run = orrery.compile(function(b) return nn.mse(net(b.x), b.y) end,
  { params = net, optimizer = optim.sgd {} })
run:eval { x = { { 1.5, 2 } }, y = { { 1.5 } } }
run:step { x = { { 1.5, 2 } }, y = { { 1.5 } } }
--> all_frozen.lua:5: params has no parameter to train: all in it are frozen
