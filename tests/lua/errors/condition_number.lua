-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local function loss(b)
  local scale = 1
  if b.y == 0 then scale = 2 end -- never
  return nn.mse(net(b.x), b.y) * scale
end
local run = orrery.compile(loss, { params = net, optimizer = optim.sgd {} })
run:step { x = { { 1.5, 2 } }, y = { { 0.0 } } }
--> condition_number.lua:7: 'b.y == 0' is always false: it compares a Tensor itself, which has no numbers while the function is traced; write b.y:eq(0) and choose with orrery.where(condition, a, b)
