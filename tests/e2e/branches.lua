-- SPDX-License-Identifier: Apache-2.0
--
-- A layer that two stages of a pipeline read, the later one first, and whose result is a result of the step. Under
-- tensor parallelism it is a sum over ranks, which some stage has to complete for all of these.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { pipe = 1, tensor = 1, early = true }

local Branches = nn.module("Branches", function(m)
  m.up, m.down = nn.linear(4, 8, { bias = false }), nn.linear(8, 4, { bias = false })
  m.late, m.head = nn.rmsnorm(4), nn.linear(4, 4)
  if args.early then m.early = nn.rmsnorm(4) end
  return function(x)
    local y = m.down(m.up(x):silu())
    local late = m.late(y)
    return m.head(args.early and late + m.early(y) or late), y
  end
end)
local model = Branches()
for i, p in ipairs(orrery.parameters(model)) do
  p:write(orrery.func(function()
    local n = math.tointeger(p.shape[1] * (p.shape[2] or 1))
    return (orrery.iota(n, "f32") * 1.7 + i):sin():reshape(table.unpack(p.shape))
  end)())
end
local stages = { { "up", "down", args.early and "early" or nil }, { "late", "head" } }
local run = orrery.compile(function(b)
  local z, y = model(b.x)
  return z:tanh():sum(2):mean(), { y = y }
end, {
  params = model, optimizer = optim.sgd { lr = 0.1 }, microbatches = 2,
  strategy = { strategy.tensor { size = args.tensor, column = "up", row = "down" },
    strategy.pipeline { size = args.pipe, stages = args.pipe > 1 and stages or "auto" } },
})
for _ = 1, 3 do
  local result = run:step { x = { { 1.0, 2.0, -3.0, 4.0 }, { 1.0, -1.5, 1.0, 0.5 } } }
  orrery.log("%.4f %.4f", result:mean(), result:get "grad_norm")
  for _, row in ipairs(result:get("y"):tolist()) do orrery.log("%.4f %.4f %.4f %.4f", table.unpack(row)) end
end
