-- SPDX-License-Identifier: Apache-2.0
--
-- Losses and results that layers of several stages have a part in, and penalties on weights of any stage: prints
-- an evaluation and a digest of each.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { schedule = "1f1b", stages = 0, zero = 0, tensor = 0, precision = false }

local stack = { strategy.pipeline { schedule = args.schedule, size = args.stages }, strategy.data {} }
if args.tensor > 0 then table.insert(stack, 1, strategy.tensor { size = args.tensor, chunks = 2 }) end
if args.zero > 0 then stack[#stack + 1] = strategy.zero { stage = args.zero } end
if args.precision then stack[#stack + 1] = strategy.precision {} end

local x, y = {}, {}
for i = 1, 24 do
  x[i] = { math.sin(i), math.cos(i), math.sin(3 * i) }
  y[i] = { math.sin(2 * i), math.cos(2 * i) }
end
local data = orrery.data.arrays { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "f32") }

local function squares(t) return (t * t):mean() end
local function penalty(layer) return 0.01 * (layer.weight * layer.weight):sum() end

-- h[k] is what layer k of `l` gives.
local losses = {
  { "the last layer", function(main) return main end },
  { "an earlier layer as well", function(main, h) return main + 0.1 * squares(h[2]) end },
  { "two and a penalty", function(main, h, l) return main + 0.1 * squares(h[1]) + penalty(l[2]) end },
  { "a penalty on the last", function(main, _, l) return main + penalty(l[4]) end },
  { "a factor of weights", function(main, h, l) return main * l[1].weight:sum() + (h[1]:mean() - h[3]:mean()) end },
  { "results", function(main, h) return main, { s = h[1]:sum(), q = squares(h[2]):exp() } end },
  { "a ratio of means", function(main, h) return main, { r = h[2]:mean() / h[4]:mean() } end },
  { "a running mean", function(main, h, _, stat)
    stat:update(stat * 0.9 + h[1]:mean(1) * 0.1)
    return main
  end },
  { "a running mean of two stages", function(main, h, _, stat, last)
    last:update(last * 0.9 + stat * h[4]:mean())
    stat:update(stat * 0.9 + h[1]:mean(1) * 0.1)
    return main + 0.1 * squares(h[1] * stat) + 0.1 * squares(h[4]) * last:sum()
  end },
}

for _, case in ipairs(losses) do
  local name, loss = case[1], case[2]
  orrery.seed(1)
  local l = { nn.linear(3, 8), nn.linear(8, 8), nn.linear(8, 8), nn.linear(8, 2) }
  local model = { layers = l, stat = orrery.buffer({ 8 }, { init = 0.1 }), last = orrery.buffer { 8 } }
  local run = orrery.compile(function(batch)
    local h = { [0] = batch.x }
    for k = 1, 4 do h[k] = l[k](h[k - 1]):tanh() end
    return loss(squares(h[4] - batch.y), h, l, model.stat, model.last)
  end, {
    params = model, microbatches = 6, clip = 1, optimizer = optim.adamw { lr = 0.01 },
    strategy = stack,
  })
  for _, batch in data:batches { size = 12, steps = 3 } do
    local result, line = run:step(batch), {}
    for _, key in ipairs(result:names()) do line[#line + 1] = ("%s %.9g"):format(key, result:get(key)) end
    orrery.log("%s: %s", name, table.concat(line, " "))
  end
  orrery.log("%s: eval %.9g", name, run:eval { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "f32") }:mean())
  orrery.log("%s: %s", name, orrery.digest(model))
end
