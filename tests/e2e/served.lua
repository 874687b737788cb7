-- SPDX-License-Identifier: Apache-2.0
--
-- A perceptron trained by servers that take gradients as they come; or, with order=, the same in one
-- process by the rules alone: a pull copies the weights, a push applies the gradients of the worker's third of
-- the batches of its last `push` steps, added, each at the weights it had pulled by then. `slow`: a rank that
-- takes its time.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { order = "", steps = 6, optimizer = "adagrad", slow = -1, pause = 0.03, push = 1, buffer = false }
orrery.seed(5)

local MLP = nn.module("MLP", function(m)
  m.a, m.b = nn.linear(8, 24), nn.linear(24, 16)
  return function(x) return m.b(nn.tanh(m.a(x))) end
end)
local model = MLP()
local optimizer = args.optimizer == "adagrad" and optim.adagrad { lr = 0.05 } or optim.momentum { lr = 0.1 }
local seen = orrery.buffer({}, { name = "seen", init = 0 })
local function loss(b)
  if args.buffer then seen:update(seen * 0.5 + b.x:mean()) end
  return nn.cross_entropy(model(b.x), b.y)
end

-- Rows [first, last] of a step's batch of twelve.
local function batch_of(step, first, last)
  local x, y = {}, {}
  for i = first, last do
    local row = {}
    for j = 1, 8 do row[j] = (step * 31 + i * 17 + j * (i + 3)) % 96 / 48 - 1 end
    x[#x + 1], y[#y + 1] = row, (step * 7 + i * 5) % 16
  end
  return { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "i32") }
end

local function train()
  local run = orrery.compile(loss, { params = model, optimizer = optimizer, microbatches = 3, strategy = STACK })
  for step = 1, args.steps do
    local done = orrery.time() + (orrery.world.rank == args.slow and args.pause or 0)
    while orrery.time() < done do end
    run:step(batch_of(step, 1, 12))
  end
  local used = run:counters()
  if used.predicted_bytes_sent ~= used.bytes_sent then
    error(("rank %d sent %d bytes, predicted were %d"):format(orrery.world.rank, used.bytes_sent, used.predicted_bytes_sent))
  end
end

local function copy()
  local weights = {}
  for i, parameter in ipairs(orrery.parameters(model)) do weights[i] = parameter:read() end
  return weights
end
local function restore(weights)
  for i, parameter in ipairs(orrery.parameters(model)) do parameter:write(weights[i]) end
end

local function by_the_rules()
  local gradients_of, apply = orrery.value_and_grad(loss, model), optimizer:attach(model)
  local add = orrery.func(function(a, b) return a + b end)
  local pulled = { [0] = { [0] = copy() }, { [0] = copy() }, { [0] = copy() } }  -- by worker and clock
  local function gradient(worker, clock)
    local at = clock
    while not pulled[worker][at] do at = at - 1 end
    local now = copy()
    restore(pulled[worker][at])
    local _, gradients = gradients_of(batch_of(clock + 1, worker * 4 + 1, worker * 4 + 4))
    restore(now)
    local read = {}
    for i, g in ipairs(gradients) do read[i] = g:read() end
    return read
  end
  for kind, worker, clock in args.order:gmatch "(%a+) (%d) (%d+)" do
    worker, clock = tonumber(worker), tonumber(clock)
    if kind == "pull" then
      pulled[worker][clock] = copy()
    else
      local first = clock // args.push * args.push  -- what is left at the end is pushed, too
      local sum = gradient(worker, first)
      for c = first + 1, clock do
        for i, g in ipairs(gradient(worker, c)) do sum[i] = add(sum[i], g) end
      end
      apply:update(sum)
    end
  end
end

if args.order == "" then train() else by_the_rules() end
orrery.log("digest %s", orrery.digest(model))
