-- SPDX-License-Identifier: Apache-2.0
--
-- A state that is updated several times in a step: each update counts, or is an error.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local function near(a, b) assert(math.abs(a - b) < 1e-5, ("%g, expected %g"):format(a, b)) end

-- Two calls of a layer, each of which moves the running statistics by a tenth.
for _, sync in ipairs { false, true } do
  local norm, calls = nn.batchnorm(1, { sync = sync }), orrery.buffer({}, { init = 0 })
  local run = orrery.compile(function(b)
    for _ = 1, 3 do calls:update(calls:updated() + 1) end
    return (norm(b.x) * b.x + norm(b.y) * b.y):mean(), { before = calls + 0, after = calls:updated() }
  end, { params = norm, optimizer = optim.sgd {}, microbatches = 1 })
  local result = run:step { x = { { 1.0 }, { 3.0 } }, y = { { 10.0 }, { 30.0 } } }
  near(norm.running_mean:read():item(), (2 * 0.1) * 0.9 + 20 * 0.1)
  near(norm.running_var:read():item(), (0.9 + 2 * 0.1) * 0.9 + 200 * 0.1)
  assert(calls:read():item() == 3 and result:get "before" == 0 and result:get "after" == 3)
end

-- A sum over the batch is another value once it is complete; what is made of it still counts.
local line, total = nn.linear(1, 1), orrery.buffer { 1 }
local run = orrery.compile(function(b)
  local first = total + b.x:sum(1)
  total:update(first)
  total:update(first + b.x:sum(1))
  return line(b.x):mean()
end, { params = line, optimizer = optim.sgd {}, microbatches = 2 })
run:step { x = { { 1.0 }, { 2.0 } } }
near(total:read():item(), 6)

local lost = orrery.func(function()
  total:update(total + 1)
  total:update(total * 2)
end)
local ok, why = pcall(lost)
assert(not ok and why:find("is updated twice in this step", 1, true), why)
