-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local function loss(b)
  local h = net(b.x)
  local positive = h:gt(0)
  if positive then h = h * 2 end
  return nn.mse(h, b.y)
end
local run = orrery.compile(loss, { params = net, optimizer = optim.sgd {} })
run:step { x = { { 1.5, 2 } }, y = { { 0.0 } } }
--> condition_truth.lua:7: nothing uses the tensor that 'gt' gives here: Lua's if, and, or, not and == cannot ask it, as it has no numbers while the function is traced; choose with orrery.where(condition, a, b)
