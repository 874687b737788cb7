-- SPDX-License-Identifier: Apache-2.0
-- Trains with a checkpoint every 7 steps. `blows`: "KILL 2 25,STOP 0 41" sends that signal to rank 2 in step 25 and to
-- rank 0 in step 41, each once whatever starts again; it is noted in `folder`. `series`: whether there are checkpoints.
local orrery = require "orrery"
local nn, optim, strategy, world = orrery.nn, orrery.optim, orrery.strategy, orrery.world
local args = orrery.args { folder = "", blows = "", stack = "data", steps = 60, pause = 0.0, series = true }
orrery.seed(1)

local stacks = {
  data = function() return strategy.data {} end,
  zero3 = function() return { strategy.data {}, strategy.fsdp {} } end,
  pipeline = function() return strategy.pipeline { size = math.min(world.size, 2) } end,
}
local model = nn.sequential { nn.linear(8, 16), nn.dropout(0.1), nn.relu, nn.linear(16, 16), nn.relu, nn.linear(16, 4) }
local run = orrery.compile(function(b) return nn.mse(model(b.x), b.y) end,
  { params = model, optimizer = optim.adam { lr = 0.01 }, microbatches = 8, strategy = stacks[args.stack](), clip = 1 })
local x, y = {}, {}
for i = 1, 64 do
  x[i], y[i] = {}, {}
  for j = 1, 8 do x[i][j] = math.sin(i * j) end
  for j = 1, 4 do y[i][j] = x[i][j] ^ 2 end
end
local data = orrery.data.arrays { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "f32") }

-- Whether a file of this name had to be made.
local function first_time(name)
  local path = args.folder .. "/" .. name
  local file = io.open(path)
  if file then file:close() return false end
  assert(io.open(path, "w")):close()
  return true
end

if args.series then run:checkpoints { dir = args.folder .. "/checkpoints", every = 7, keep = 2 } end
orrery.log("rank %d of %d begins behind step %d", world.rank, world.size, run.steps)
for step, batch in data:batches { size = 16, steps = args.steps, from = run.steps + 1 } do
  run:step(batch):mean()
  local until_then = orrery.time() + args.pause
  while orrery.time() < until_then do end
  for signal, rank, at in args.blows:gmatch "(%u+) (%d+) (%d+)" do
    if tonumber(rank) == world.rank and tonumber(at) == step and first_time(("blow-%s-%s"):format(rank, at)) then
      os.execute(("kill -%s $PPID; sleep 0.2"):format(signal))
    end
  end
end
orrery.log("digest %s", orrery.digest(model))
