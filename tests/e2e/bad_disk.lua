-- SPDX-License-Identifier: Apache-2.0
-- Trains, saves after each step and says so; or, with load, says what it has loaded. `series`: by run:checkpoints.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { at = "", steps = 3, series = false, load = false, zero = 0 }
orrery.seed(1)
local model = nn.sequential { nn.linear(8, 33), nn.gelu, nn.linear(33, 8) }
local stack = { strategy.data {} }
if args.zero > 0 then stack[2] = strategy.zero { stage = args.zero } end
local run = orrery.compile(function(batch) return nn.mse(model(batch.x), batch.x) end,
  { params = model, optimizer = optim.adam { lr = 0.01 }, microbatches = 4, strategy = stack })
local rows = {}
for i = 1, 8 do
  rows[i] = {}
  for j = 1, 8 do rows[i][j] = math.sin(i * j) end
end
if args.load then
  run:load(args.at)
  orrery.log("loaded %d %s", run.steps, orrery.digest(model))
  return
end
if args.series then run:checkpoints { dir = args.at, every = 1, keep = 1, best = "loss" } end
local begun = {}
for _ = run.steps + 1, args.steps do
  run:step { x = orrery.tensor(rows) }
  -- Beside steps: a save begins with the next step, and is complete when the one after that has begun.
  if #begun == 2 then orrery.log("%s", table.remove(begun, 1)) end
  local now = ("saved %d %s"):format(run.steps, orrery.digest(model))
  if args.series then
    begun[#begun + 1] = now
  else
    run:save(args.at)
    orrery.log("%s", now)
  end
end
if args.series then
  run:finish_save()
  for _, one in ipairs(begun) do orrery.log("%s", one) end
end
