-- SPDX-License-Identifier: Apache-2.0
--
-- L-BFGS on a quadratic, where a line search ends at the minimum; frozen parameters; and what it refuses. PyTorch's paths are
-- in tests/golden.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local line = nn.linear(1, 1)
local function loss(b) return nn.mse(line(b.x), b.y) end
local batch = { x = { { 0.0 }, { 1.0 }, { 2.0 } }, y = { { 1.0 }, { 3.0 }, { 5.0 } } }
local lbfgs = optim.lbfgs(loss, { params = line, line_search = "strong_wolfe", history = 5 })
local first = lbfgs:step(batch)
assert(first > 0.1 and lbfgs:step(batch) < 1e-9)
assert(math.abs(line.weight:read():item() - 2) < 1e-4 and math.abs(line.bias:read():item() - 1) < 1e-4)

-- A frozen part stays.
nn.freeze { line.bias }
line.weight:write { { 0 } }
optim.lbfgs(loss, { params = line, line_search = "strong_wolfe" }):step(batch)
assert(math.abs(line.bias:read():item() - 1) < 1e-4 and math.abs(line.weight:read():item() - 2) < 1e-3)

local function refused(words, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and message:find(words, 1, true), ("'%s', expected '%s'"):format(tostring(message), words))
end
refused("lbfgs: params is missing", optim.lbfgs, loss, {})
refused("optim.lbfgs: loss is a table, expected a module or a function", optim.lbfgs, { params = line })
refused('lbfgs: line_search = "wolfe": give "none" or "strong_wolfe"', optim.lbfgs, loss, { params = line, line_search = "wolfe" })
refused("lbfgs: history = 0, expected at least 1", optim.lbfgs, loss, { params = line, history = 0 })
refused("lbfgs: all parameters are frozen", optim.lbfgs, loss, { params = nn.freeze(nn.linear(1, 1)) })
refused("'a.weight' is f32 and 'b.bias' is f64: give parameters of one dtype", function()
  local both = { a = nn.linear(1, 1, { bias = false }), b = nn.linear(1, 1, { dtype = "f64" }) }
  optim.lbfgs(function(b) return both.a(b.x):mean() end, { params = both })
end)
refused("compile: optim.lbfgs is a loop of its own: call its :step(batch)", orrery.compile, loss,
  { params = line, optimizer = lbfgs })
