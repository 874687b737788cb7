-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local body, head = nn.linear(2, 2), nn.linear(2, 1, { bias = false })
local run = orrery.compile(function(b) return nn.mse(head(body(b.x)), b.y) end,
  { params = body, optimizer = optim.sgd {} })
run:eval { x = { { 1.5, 2 } }, y = { { 1.5 } } }
nn.freeze(head)
run:step { x = { { 1.5, 2 } }, y = { { 1.5 } } }
nn.freeze(head, false)
run:step { x = { { 1.5, 2 }, { 1, 2 } }, y = { { 1.5 }, { 2 } } }
--> not_in_params.lua:5: linear: the loss reads parameter 'weight' f32[1,2], made at not_in_params.lua:4, which 'params' does not hold, so that it would never be trained: keep its layer as a part of its module (m.name = ...), put it into params, or leave it as it is with nn.freeze
