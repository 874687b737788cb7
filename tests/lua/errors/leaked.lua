-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local batch = { x = { { 1.5, 2 } }, y = { { 1.5 } } }
local kept
local function loss(b)
  if kept then return kept end
  kept = nn.mse(net(b.x), b.y)
  return kept
end
local run = orrery.compile(loss, { params = net, optimizer = optim.sgd {} })
run:step(batch)
run:step { x = { { 1.5, 2 }, { 1, 1 } }, y = { { 1.5 }, { 1 } } }
--> leaked.lua:14: this tensor belongs to another traced function; pass it as an argument or an output
