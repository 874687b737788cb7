-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local batch = { x = { { 1.5, 2 } }, y = { { 1.5 } } }
local function loss(b)
  local x = b.x * math.random()
  return nn.mse(net(x), b.y)
end
local run = orrery.compile(loss, { params = net, optimizer = optim.sgd {} })
run:step(batch)
--> random_in_trace.lua:7: mul: this function is not traced to the same program as before, which is what runs: give what changes from step to step in the batch or as an orrery.input, and draw random numbers with orrery.uniform
