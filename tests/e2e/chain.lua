-- SPDX-License-Identifier: Apache-2.0
-- A run that saves all the time and says the digest of what it saves, to be ended and continued (chain.py); with
-- every=0 it saves nothing.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { at = "", stack = "{ strategy.data{} }", steps = 1000000, every = 3 }

local m = nn.sequential { nn.linear(24, 32), nn.gelu, nn.dropout(0.1), nn.linear(32, 32), nn.gelu, nn.linear(32, 10) }
local x, y = {}, {}
for i = 1, 96 do
  x[i], y[i] = {}, i * 7 % 10
  for j = 1, 24 do x[i][j] = math.sin(i * j) end
end
local data = orrery.data.arrays { x = orrery.tensor(x), y = orrery.tensor(y) }
local run = orrery.compile(function(batch)
  return nn.cross_entropy(m(batch.x), batch.y)
end, { params = m, optimizer = optim.adamw { lr = 0.003 }, microbatches = 4,
  strategy = load("local strategy = ... return " .. args.stack)(strategy) })

local function exists(path)
  local file = io.open(path)
  return file and file:close()
end
local from = 0
if exists(args.at .. "/checkpoint.json") then
  from = run:load(args.at)
  orrery.log("loaded %d %s", from, orrery.digest(m))
end
for step, batch in data:batches { size = 16, steps = args.steps, from = from + 1 } do
  run:step(batch)
  if args.every == 0 then
    orrery.log("passing %d %s", step, orrery.digest(m))
  elseif step % args.every == 0 then
    orrery.log("saving %d %s", step, orrery.digest(m)) -- it may be killed before it could say so
    run:save(args.at)
  end
end
