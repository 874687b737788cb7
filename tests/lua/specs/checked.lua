-- SPDX-License-Identifier: Apache-2.0
--
-- What functions of the library refuse by what is written over them.
local orrery = require "orrery"
local nn = orrery.nn

local function refused(part, call, ...)
  local ok, why = pcall(call, ...)
  assert(not ok and why:find(part, 1, true), why)
end

refused("nn.gelu_exact: x is a table, expected a tensor", nn.gelu_exact, { 1 })
refused("nn.linear: inputs is 1.5, expected an integer", nn.linear, 1.5, 2)
refused("nn.linear: inputs is nil, expected an integer; call it as nn.linear(inputs, outputs, options?)", nn.linear)
refused("nn.relu: x is nil, expected a tensor; call it as nn.relu(x)", nn.relu, nil)
refused("nn.linear: bias is 0, expected true or false", nn.linear, 1, 2, { bias = 0 })
refused("orrery.compile: clip is a boolean, expected a number", orrery.compile, nn.mse, { clip = false })
refused("nn.linear: 4 arguments given, at most 3 expected", nn.linear, 1, 2, {}, "f64")
refused("nn.conv1d: stride is '2', expected an integer or a list", nn.conv1d, 1, 2, 3, { stride = "2" })
refused("nn.evaluated: model is a table, expected a module or a function", nn.evaluated, {})
refused("nn.sequential: make is 3, expected a function", nn.sequential, 2, 3)
refused("nn.init.xavier: dims is 3, expected a list", nn.init.xavier, 3)
refused("orrery.einsum: equation is 3, expected a string", orrery.einsum, 3)
refused("nn.init: dim 1 is nil, expected an integer of at least 1", nn.init.fan_in, {})
refused("conv2d: size is {a, nil}, expected 2 integers of at least 1", nn.conv2d, 1, 1, { "a" })
nn.linear(1, 2.0, { tie = false })

local optim, strategy = orrery.optim, orrery.strategy
refused("momentum: nesterov is 0, expected true or false", optim.momentum, { nesterov = 0 })
refused("sgd: decay is 'a', expected a number or a function of the step", optim.sgd, { decay = "a" })
refused("sgd group: frozen is 1, expected true or false", optim.sgd, { groups = { { match = "*", frozen = 1 } } })
refused("sgd: groups has 'match', expected a list of tables", optim.sgd, { groups = { match = "*" } })
refused("groups is 3, expected a table", optim.sgd, { groups = 3 })
refused("cosine: steps is missing: how many steps there are", optim.cosine, { peak = 1 })
refused("linear: warmup is a table, expected an integer", optim.linear, { peak = 1, steps = 9, warmup = {} })
optim.sgd { lr = optim.constant { peak = 1 }, decay = math.sqrt, groups = { { match = { "*" } } } }

refused("strategy.data: options are 3, expected a table", strategy.data, 3)
refused("strategy.tensor: column is a list of other things than names", strategy.tensor, { column = { print } })
refused("strategy.average: states is 0, expected true or false", strategy.average, { states = 0 })
refused("strategy.define: the definition is 3, expected a table", strategy.define, 3)
strategy.pipeline { stages = { { "a", "b" }, "c" } }

local circle = {}
circle[1] = { circle }
refused("the table of modules contains itself", orrery.parameters, circle)
refused(":attach: called on a table; call it with a colon, x:attach(...)", optim.sgd {}.attach, {}, nn.linear(1, 1))
refused(":save_weights: called on 'path'", nn.linear(1, 1).save_weights, "path")
refused("nn.linear: dtype is 'f31', expected one of f32, f64", nn.linear, 1, 1, { dtype = "f31" })
refused("optim.define: update is 3, expected a function", optim.define, "mine", { update = 3 })
refused("strategy.traffic: the query has no ranks: give what predict is given", strategy.traffic.sum, {})

-- Lua's own errors in the library.
local ok, why = pcall(orrery.log, "%d", "text")
assert(not ok and why:find "^checked.lua:%d+: bad argument #1 to 'format'", why)

-- What is declared in several kinds is taken in each.
orrery.func(function(x) return nn.mse(x, 0.25) + nn.adaptive_avg_pool1d { 1 }(x):sum() + orrery.normal(3):sum() end) { { { 1.5, 2.5 } } }
strategy.place { modules = "a;b,c", ranks = "0,1" }
strategy.context { fields = "x" }
-- A nil in a list is no end of it.
refused("a list with nothing at place 2", orrery.nn.sequential, { orrery.nn.relu, nil, orrery.nn.relu })
refused("a list with nothing at place 2", strategy.recompute, { path = { "a", nil, "b" } })
refused("a list with nothing at place 2", orrery.compile, print,
  { params = orrery.nn.linear(1, 1), optimizer = orrery.optim.sgd {}, strategy = { strategy.data {}, nil, strategy.recompute {} } })
