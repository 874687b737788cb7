-- SPDX-License-Identifier: Apache-2.0
-- What goes wrong around checkpoints: `case` says what this script does to its run.
local orrery = require "orrery"
local nn, optim, world, strategy = orrery.nn, orrery.optim, orrery.world, orrery.strategy
local args = orrery.args {
  case = "", at = "", other = "", steps = 3, zero = 0, rate = 0.01, clip = 0.0, norm = false, keep = 2, best = "", hand = false, stop = 0,
}
local model = nn.linear(8, 8)
if args.case == "read_first" then
  model = nn.sequential { nn.linear(8, 32), nn.gelu, nn.linear(32, 32), nn.gelu, nn.linear(32, 8) }
end
local stack = { strategy.data {} }
if args.zero > 0 then stack[2] = strategy.zero { stage = args.zero } end
local run = orrery.compile(function(batch)
  local out = model(batch.x)
  local loss = nn.mse(out, batch.y)
  -- Where the scale is 0 this is the root of 0, which has no derivative.
  if args.case:find "^nan" then
    local scaled = out * batch.scale
    loss = loss + (scaled * scaled):sum(2):sqrt():mean()
  end
  return loss
end, { params = model, optimizer = optim.adam { lr = args.rate }, microbatches = 4, strategy = stack, clip = args.clip, grad_norm = args.norm })

local x, y, none = {}, {}, {}
for i = 1, 8 do
  x[i], y[i], none[i] = {}, {}, {}
  for j = 1, 8 do x[i][j], y[i][j], none[i][j] = (i * j % 5) / 5, (i + j) % 3 / 3, 0.0 end
end
local function train(steps, scale)
  local batch = { x = orrery.tensor(x), y = orrery.tensor(y), scale = orrery.tensor(y) }
  if scale == 0 then batch.scale = orrery.tensor(none) end
  for _ = 1, steps do run:step(batch) end
end
local cases = {}

function cases.save() train(args.steps) run:save(args.at) end
function cases.load() run:load(args.at) train(args.steps) end
-- Ranks that read different directories.
function cases.apart() run:load(world.rank == 0 and args.at or args.other) train(1) end -- load
function cases.one_loads() if world.rank == 0 then run:load(args.at) end train(1) end
function cases.one_writes()
  train(2)
  if world.rank == 1 then model.bias:write { 1, 2, 3, 4, 5, 6, 7, 8 } end -- write
  train(1)
end
function cases.one_writes_first()
  if world.rank == 1 then model.weight:write(x) end -- write
  train(1)
end
function cases.one_writes_last()
  train(2)
  if world.rank == 0 then model.bias:write { 1, 2, 3, 4, 5, 6, 7, 8 } end -- write
  run:save(args.at)
end
function cases.different_parts()
  train(1)
  local value = {}
  for i = 1, 8 do value[i] = i + world.rank end
  model.bias:write(value) -- write
  train(1)
end
function cases.all_write()
  train(2)
  model.bias:write { 1, 2, 3, 4, 5, 6, 7, 8 }
  train(1)
  run:save(args.at)
end
function cases.norm()
  for _ = 1, 3 do
    local result = run:step { x = orrery.tensor(x), y = orrery.tensor(y), scale = orrery.tensor(y) }
    local known, norm = pcall(result.get, result, "grad_norm")
    orrery.log("norm %s", known and ("%.17g"):format(norm) or norm)
  end
end
-- Whole on all ranks before anything is known of parts.
function cases.read_first()
  orrery.log("first %s", orrery.digest(model))
  train(2)
end
-- A finite loss whose gradient is not.
function cases.nan() train(1) train(1, 0) end
function cases.nan_kept()
  train(1)
  run:save(args.at)
  assert(not pcall(train, 1, 0))
  local saved, refused = pcall(run.save, run, args.at)
  local stepped, again = pcall(train, 1)
  orrery.log("%s / %s / %s", saved, stepped, tostring(refused):find("step 2 has failed", 1, true) ~= nil)
  run:load(args.at)
  orrery.log("digest %s %s", orrery.digest(model), run.steps)
end
function cases.bad_weights()
  train(1)
  model.bias:write { 1, 2, 3, 0 / 0, 5, 6, 7, 8 }
  run:save(args.at) -- save
end
-- `hand`: a series of which nothing is saved yet.
function cases.two_writers()
  if args.hand then run:checkpoints { dir = args.at, every = 100 } end
  train(1)
  if not args.hand then run:save(args.at) end
  orrery.log "saved"
  io.read "l"
  train(1)
  if not args.hand then run:save(args.at) end
end
-- Losses as the rows say: the batch of step n is rows times scales[n].
function cases.series()
  local from = run:checkpoints { dir = args.at, every = 2, keep = args.keep, best = args.best }
  orrery.log("from %d", from)
  local scales = { 3, 3, 3, 1, 3, 3, 3, 3, 3, 3 }
  for step = from + 1, args.steps do
    local scaled = {}
    for i = 1, 8 do
      scaled[i] = {}
      for j = 1, 8 do scaled[i][j] = x[i][j] * (scales[step] or 3) end
    end
    run:step { x = orrery.tensor(scaled), y = orrery.tensor(x), scale = orrery.tensor(y) }
  end
  run:finish_save()
  local used = run:counters()
  orrery.log("waited %s copied %s", used.checkpoint_seconds > 0, used.checkpoint_bytes > 0)
end
-- What the script changes after a step is in the checkpoint of that step. `hand`: it saves in its loop; `stop`: the step
-- in which a rank is told to.
function cases.follows()
  local mean = orrery.buffer({ 8, 8 }, { name = "mean", init = 0 })
  local follow = orrery.func(function() mean:update(mean * 0.5 + model.weight * 0.5) end)
  local extra = ""
  local there = args.hand and io.open(args.at .. "/checkpoint.json")
  if there then there:close() extra = select(2, run:load(args.at)) end
  if not args.hand then run:checkpoints { dir = args.at, every = 2 } end
  orrery.log("from %d %s", run.steps, extra)
  for step = run.steps + 1, args.steps do
    if step == args.stop and world.rank == world.size - 1 then os.execute "kill -USR1 $PPID" end
    train(1)
    if args.hand and step < 4 then run:save(args.at, "after " .. step, false) end
    follow()
    if step == 4 or step == 5 then model.bias:write { step, 2, 3, 4, 5, 6, 7, 8 } end
  end
  if args.hand then run:save(args.at) end
  orrery.log("mean %s", orrery.digest { mean })
end
-- Two runs in turn, of which the second reads what the first trains. `stop`: the step in which a rank is told to, of the
-- second run if `hand`.
function cases.two_runs()
  local judge = nn.linear(8, 1)
  orrery.parameters { judge = judge }
  local second = orrery.compile(function(b) return nn.mse(judge(model(b.x)), b.y:slice(2, 1, 1)) end,
    { params = judge, optimizer = optim.adam { lr = args.rate }, microbatches = 4 })
  run:checkpoints { dir = args.at .. "/first", every = 4 }
  second:checkpoints { dir = args.at .. "/second", every = 4 }
  orrery.log("from %d %d", run.steps, second.steps)
  local function tell(step, second_one)
    if step == args.stop and args.hand == second_one and world.rank == 0 then os.execute "kill -USR1 $PPID" end
  end
  for step = run.steps + 1, args.steps do
    tell(step, false)
    train(1)
    tell(step, true)
    second:step { x = orrery.tensor(x), y = orrery.tensor(y) }
  end
  orrery.log("judge %s", orrery.digest(judge))
end
-- Steps go on while a disk takes its time.
function cases.beside()
  local function there() return io.open(args.at .. "/checkpoint.json") ~= nil end
  train(1)
  run:save(args.at, "", false)
  train(3)
  local waited = run:counters().checkpoint_seconds
  orrery.log("at first %s %s", there(), waited < 4)
  run:finish_save()
  orrery.log("then %s %s", there(), run:counters().checkpoint_seconds > waited)
end
-- A step that brings the error of a checkpoint was not taken, and can be taken again.
function cases.goes_on()
  train(1)
  run:save(args.at, "", false)
  local failed = 0
  while run.steps < args.steps or failed == 0 do
    local taken, why = pcall(train, 1)
    if not taken then
      failed = failed + 1
      orrery.log("failed %d: %s", failed, why)
    end
    if run.steps > 1000 then break end
  end
  local steps = run.steps
  run:save(args.at)
  orrery.log("went on to %s", run:load(args.at) == steps)
end
function cases.fails()
  train(2)
  run:save(args.at, "", false)
  error "as told"
end

cases[args.case]()
orrery.log("digest %s", orrery.digest(model))
