-- SPDX-License-Identifier: Apache-2.0
--
-- A part of a training step that computes as evaluation does, and what the loss may not update.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local teacher = nn.freeze(nn.sequential { nn.linear(2, 4), nn.batchnorm(4), nn.dropout(0.5), nn.linear(4, 1) })
local student = nn.sequential { nn.linear(2, 8), nn.dropout(0.5), nn.linear(8, 1) }
local x = { { 1.0, 2.0 }, { -1.0, 0.5 }, { 0.25, -3.0 }, { 2.0, 2.0 } }
local before = orrery.digest(teacher)
local run = orrery.compile(function(b)
  local wanted = nn.evaluated(teacher)(b.x)
  assert(orrery.type(wanted) == "Tensor")
  assert(not pcall(nn.evaluated(error), "a model that fails"))
  return nn.mse(student(b.x), wanted), { wanted = wanted, dropped = orrery.dropout(b.x * 0 + 1, 0.5) }
end, { params = student, optimizer = optim.sgd {}, microbatches = 2 })
local result = run:step { x = x }
local expected = orrery.func(function(rows) return teacher(rows) end)(x)
assert(tostring(result:get "wanted") == tostring(expected), tostring(result:get "wanted"))
assert(orrery.digest(teacher) == before)
local ones = 0
for _, row in ipairs(result:get("dropped"):tolist()) do ones = ones + (row[1] == 1 and 1 or 0) end
assert(ones == 0) -- what follows it is trained as ever: 0 or 2

-- Weights of a step's own parameters: the optimizer would replace them.
local line = nn.linear(2, 1)
local clamped = orrery.compile(function(b)
  line.weight:update(line.weight:clamp(-0.1, 0.1))
  return line(b.x):mean()
end, { params = line, optimizer = optim.sgd {}, microbatches = 1 })
local ok, why = pcall(clamped.step, clamped, { x = x })
assert(not ok and why:find("evaluated.lua:%d+: the loss updates 'weight', which this step trains"), why)
line.weight:freeze()
clamped:step { x = x }
for _, w in ipairs(line.weight:read():tolist()[1]) do assert(math.abs(w) <= 0.1 + 1e-7) end
