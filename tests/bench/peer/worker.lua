-- SPDX-License-Identifier: Apache-2.0
--
-- Orrery as a contestant; speaks the protocol of contestants.py.
local orrery = require "orrery"
local models = require "golden.models"
local nn, optim, strategy, world = orrery.nn, orrery.optim, orrery.strategy, orrery.world
local args = orrery.args {
  dir = "", pipes = "", steps = 20, batch = 1, microbatches = 1, widths = "",
  model = "", vocab = 0, positions = 0, dim = 0, heads = 0, layers = 0, width = 0, hidden = 0, blocks = 0, classes = 0,
  kv_heads = 0, experts = 0,
  stack = "data", schedule = "", compute = "f32", lr = 1e-3, decay = 0.0, b1 = 0.9, b2 = 0.999, eps = 1e-8,
  cpu = 1.0, numerics = "exact",
}

local model = require "bench.peer.model"(args)
for _, parameter in ipairs(orrery.parameters(model)) do
  parameter:write(orrery.load(("%s/%s.npy"):format(args.dir, parameter.name)))
end

local stacks = {
  data = function() return { strategy.data {} } end,
  zero1 = function() return { strategy.data {}, strategy.zero {} } end,
  zero3 = function() return { strategy.data {}, strategy.fsdp {} } end,
  pipeline = function() return { strategy.pipeline { schedule = args.schedule } } end,
  tensor = function() return { strategy.tensor { size = world.size } } end,
}

local stack = assert(stacks[args.stack])()
if args.compute ~= "f32" then stack[#stack + 1] = strategy.precision { compute = args.compute } end

-- Of the patterns of what is not decayed, those that a parameter of this model matches.
local undecayed = {}
for _, glob in ipairs(models.undecayed) do
  local pattern = "^" .. glob:gsub("%.", "%%."):gsub("%*", ".*") .. "$"
  for _, parameter in ipairs(orrery.parameters(model)) do
    if parameter.name:match(pattern) then
      undecayed[#undecayed + 1] = glob
      break
    end
  end
end

-- Some models give a loss of their own, too.
local function loss_of(batch)
  local logits, more = model(batch.x)
  local loss = nn.cross_entropy(logits, batch.y)
  return more and loss + more or loss
end

local run = orrery.compile(loss_of, {
  params = model, microbatches = args.microbatches, numerics = args.numerics,
  strategy = stack,
  optimizer = optim.adamw {
    lr = args.lr, decay = args.decay, b1 = args.b1, b2 = args.b2, eps = args.eps,
    groups = { { match = undecayed, decay = 0 } },
  },
})

local data = orrery.data.arrays { x = args.dir .. "/x.npy", y = args.dir .. "/y.npy" }
local batches = {}
for i = 1, args.steps do batches[i] = data:batch(i, { size = args.batch, shuffle = false }) end

local count = 0
local function step()
  count = count + 1
  return run:step(batches[(count - 1) % args.steps + 1])
end

local function timed()
  local start = orrery.time()
  step():mean()
  return (orrery.time() - start) * 1000
end

local function loss() return step():mean() end

-- What rank 0 sends in a step.
local function sent()
  local before = run:counters().bytes_sent
  step():mean()
  return run:counters().bytes_sent - before
end

-- The share of a step in which a rank does not compute, of all ranks: what of its time on its part of a CPU the
-- process did not run.
local function idle()
  local start, cpu = orrery.time(), os.clock()
  step():mean()
  local ran = (os.clock() - cpu) / (orrery.time() - start) / args.cpu
  return 1 - world:allreduce(orrery.tensor { ran }, { op = "mean" }):item()
end

local measure = { idle = idle, time = timed, losses = loss, bytes = sent }
local replies = world.rank == 0 and assert(io.open(args.pipes .. "/replies", "w"))
for line in io.lines(("%s/requests.%d"):format(args.pipes, world.rank)) do
  local word, unrecorded, recorded = line:match "(%a+) (%d+) (%d+)"
  for _ = 1, tonumber(unrecorded) do step() end
  local numbers = {}
  for i = 1, tonumber(recorded) do numbers[i] = measure[word]() end
  if replies then
    replies:write(table.concat(numbers, " "), "\n")
    replies:flush()
  end
end
