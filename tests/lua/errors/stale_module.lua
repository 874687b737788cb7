-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local Net = nn.module("Net", function(m)
  m.fc, m.act = nn.linear(2, 1), nn.tanh
  return function(x) return m.act(m.fc(x)) end
end)
local net = Net()
local run = orrery.compile(function(b) return nn.mse(net(b.x), b.y) end, { params = net, optimizer = optim.sgd {} })
local batch = { x = { { 1.5, 2 } }, y = { { 1.5 } } }
for _ = 1, 3 do run:step(batch) end
net.act = function(x) return x * 0.5 end
local ok, message = pcall(run.step, run, batch)
assert(not ok and message:find "'net.act' of the function at stale_module.lua:9 was a function")
orrery.fail "as expected"
--> stale_module.lua:15: as expected
