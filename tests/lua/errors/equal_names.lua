-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local a = nn.linear(2, 2, { bias = false })
local b = nn.linear(2, 1, { bias = false })
orrery.compile(function(batch) return nn.mse(b(a(batch.x)), batch.y) end,
  { params = { a.weight, b.weight }, optimizer = optim.sgd {} })
--> equal_names.lua:6: params has two tensors named 'weight', made at equal_names.lua:4 and equal_names.lua:5: put their modules into a table, params = {a = ..., b = ...}
