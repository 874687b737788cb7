-- SPDX-License-Identifier: Apache-2.0
--
-- What is evaluated, by run:eval or a function: no dropout, statistics of earlier steps, states that stay, and means of
-- batches that are smaller than the number of microbatches.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local function near(a, b) assert(math.abs(a - b) < 1e-5, ("%g, expected %g"):format(a, b)) end

-- Of x, dropout leaves all in evaluation, and in training no element as it is.
local Drop = nn.module("Drop", function(m)
  m.gain, m.drop = nn.parameter({ 1 }, { init = nn.init.constant(1) }), nn.dropout(0.5)
  return function(x) return orrery.dropout(m.drop(x * m.gain), 0.25) end
end)
local model = Drop()
local run = orrery.compile(function(b) return model(b.x):mean(), { y = model(b.x) } end,
  { params = model, optimizer = optim.sgd { lr = 0.0 }, microbatches = 1 })
local ones = { x = { { 1.0, 1.0, 1.0, 1.0 }, { 1.0, 1.0, 1.0, 1.0 } } }
for _, row in ipairs(run:step(ones):get("y"):tolist()) do
  for _, y in ipairs(row) do assert(y == 0 or math.abs(y - 1 / (0.5 * 0.75)) < 1e-6) end
end
near(run:eval(ones):mean(), 1)
for _, made in ipairs { run:eval(ones):get "y", orrery.func(function(x) return model(x) end)(ones.x) } do
  for _, row in ipairs(made:tolist()) do for _, y in ipairs(row) do assert(y == 1) end end
end

-- Rows of batches that have fewer of them than there are microbatches.
local line = nn.sequential { nn.linear(1, 1), nn.batchnorm(1) }
local fit = orrery.compile(function(b) return nn.mse(line(b.x), b.y), { rows = line(b.x) } end,
  { params = line, optimizer = optim.sgd { lr = 0.1 }, microbatches = 4 })
local function batch(n)
  local x, y = {}, {}
  for i = 1, n do x[i], y[i] = { math.sin(i) }, { i * 0.5 } end
  return { x = x, y = y }
end
fit:step(batch(8))
local before = orrery.digest(line)
local w, c = line[1].weight:read():item(), line[1].bias:read():item()
local bn = line[2]
local mean, var = bn.running_mean:read():item(), bn.running_var:read():item()
for n = 1, 9 do
  local sum, result = 0, fit:eval(batch(n))
  for i = 1, n do
    local y = (w * math.sin(i) + c - mean) / math.sqrt(var + 1e-5) * bn.weight:read():item() + bn.bias:read():item()
    near(result:get("rows"):tolist()[i][1], y)
    sum = sum + (y - i * 0.5) ^ 2
  end
  near(result:mean(), sum / n)
end
assert(orrery.digest(line) == before)

-- Integers of samples come back as they are, those too that no f64 holds.
local weight = orrery.parameter({}, { init = 1 })
local ids = orrery.compile(function(b) return (b.x * weight):mean(), { id = b.id } end,
  { params = { weight = weight }, optimizer = orrery.optim.sgd {}, microbatches = 2 })
local large = { math.maxinteger, math.mininteger, (1 << 53) + 1, -(1 << 40) - 3 }
local fed = { x = { 1.5, 2.5, 3.5, 4.5 }, id = orrery.tensor(large, "i64") }
for i, id in ipairs(ids:step(fed):get("id"):tolist()) do assert(id == large[i], id) end
for i, id in ipairs(ids:eval(fed):get("id"):tolist()) do assert(id == large[i], id) end
