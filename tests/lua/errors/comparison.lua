-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local batch = { x = { { 1.5, 2 } }, y = { { 1.5 } } }
local function loss(b)
  local y = net(b.x)
  if y < 3 then y = y + 1 end
  return nn.mse(y, b.y)
end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step(batch)
--> comparison.lua:8: Lua turns the result of < and > into true or false; write a:lt(b), a:gt(b)
