-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local net = nn.linear(2, 1)
local mine = strategy.define { name = "mine", class = "approx", transform_forward = function(draft)
  for _, v in ipairs(draft:values "activation") do
    if v.op == "matmul" then draft:replace(v, draft:tensor(v):sum(2)) end
  end
end }
orrery.compile(function(b) return net(b.x):mean() end,
  { params = net, optimizer = optim.sgd {}, strategy = { mine {} } }):step { x = { { 1.5, 2 } } }
--> replace_shape.lua:11: strategy.mine: replace_shape.lua:7: the reduce [1] of replace_shape.lua:7 cannot stand for the matmul [1,1] of replace_shape.lua:10 (linear): one is f32[1], the other f32[1,1]: reshape it
