-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local function loss(b)
  local slope = orrery.grad(nn.mse(net(b.x), b.y), { net.weight })[1]
  local moved = net.weight + slope * 0.05
  return nn.mse(b.x:matmul(moved, { transpose_b = true }), b.y)
end
orrery.compile(loss, { params = net, optimizer = optim.sgd {} }):step { x = { { 1.5, 2 } }, y = { { 1.5 } } }
--> grad_sharpness.lua:8: matmul: a mean over the batch is known only after all microbatches and cannot meet values of single samples; keep it in a buffer with :update, which the next step's samples may read
