-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local net = nn.linear(2, 1)
local batch = { x = { { 1.5, 2 } }, y = { { 1.5 } } }
local cfg = { loss = { k = 1 }, steps = 0 }
local function loss(b) return nn.mse(net(b.x) * cfg.loss.k, b.y) end
local run = orrery.compile(loss, { params = net, optimizer = optim.sgd {} })
for _ = 1, 6 do
  run:step(batch)
  cfg.steps = cfg.steps + 1
end
cfg.loss.k = 2
run:step(batch)
--> stale_table.lua:14: 'cfg.loss.k' of the function at stale_table.lua:7 was 1 when the step was traced and is 2 now; a trace keeps the first value: make it an orrery.input, or compile again
