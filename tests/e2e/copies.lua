-- SPDX-License-Identifier: Apache-2.0
--
-- Weights that the script changes between steps: what forward reads of them must follow. `case` says what is read
-- of them beside a product, and when.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { at = "", case = "" }
orrery.seed(5)

local Net = nn.module("Net", function(m)
  m.a, m.b = nn.linear(64, 64), nn.linear(64, 8)
  return function(x) return m.b(m.a(x):gelu()) end
end)
local model = Net()
local run = orrery.compile(function(b)
  local loss = nn.cross_entropy(model(b.x), b.y)
  if args.case == "penalty" then loss = loss + (model.a.weight * model.a.weight):sum() * 1e-4 end
  return loss
end, { params = model, optimizer = optim.adamw { lr = 1e-2 }, clip = 0.5, microbatches = 4, strategy = STACK })

local x, y = {}, {}
for i = 1, 8 do
  x[i], y[i] = {}, i % 8
  for j = 1, 64 do x[i][j] = math.sin(i * j) end
end
local batch = { x = orrery.tensor(x), y = orrery.tensor(y, "i32") }
local function show(what) orrery.log("%s %.17g", what, what == "eval" and run:eval(batch):mean() or run:step(batch):mean()) end

show "eval"  -- before the training step is compiled
show "step"
local other = {}
for i = 1, 64 do
  other[i] = {}
  for j = 1, 64 do other[i][j] = math.cos(i + 3 * j) / 8 end
end
model.a.weight:write(other)
show "eval"
show "step"
run:save(args.at)
show "step"
run:load(args.at)
show "eval"
show "step"
orrery.log("digest %s", orrery.digest(model))
