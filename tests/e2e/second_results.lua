-- SPDX-License-Identifier: Apache-2.0
--
-- Tensors as second results of steps and of evaluations, under every stack that fits the number of ranks:
-- a line for each value, the same for all of them. Then what several ranks must not do.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { case = "equal" }
local world = orrery.world
local n = world.size

local Net = nn.module("Net", function(m)
  m.a, m.b, m.c, m.d = nn.linear(3, 12), nn.linear(12, 12), nn.linear(12, 12), nn.linear(12, 4)
  return function(x) return m.d(nn.tanh(m.c(nn.gelu(m.b(nn.tanh(m.a(x))))))) end
end)

local function batch_of(step, rows)
  local x, y = {}, {}
  for i = 1, rows do
    x[i], y[i] = {}, (i + step) % 4
    for j = 1, 3 do x[i][j] = ((step * 7 + i * 5 + j * (i + 2)) % 11) / 5 - 1 end
  end
  return { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "i32") }
end

local function text(value)
  if type(value) ~= "table" then return ("%.9g"):format(value) end
  local words = {}
  for i, each in ipairs(value) do words[i] = text(each) end
  return "{" .. table.concat(words, " ") .. "}"
end

local function train(stack, seed, staged)
  orrery.seed(seed or 3)
  local model = Net()
  local run = orrery.compile(function(b)
    local logits = model(b.x)
    return nn.cross_entropy(logits, b.y), {
      logits = logits, best = logits:argmax(), flipped = logits:transpose(1, 2), labels = b.y,
      pairs = logits:reshape { -1, 2 }, rows = logits:sum(1), one = logits:mean(),
      wide = not staged and model.a.weight * 2 or nil, odd = (b.x - 1):log(),
    }
  end, { params = model, optimizer = optim.adam { lr = 0.01 }, microbatches = 8, strategy = stack })
  local function show(what, result)
    for _, name in ipairs(result:names()) do
      local value = result:get(name)
      local dims = orrery.type(value) == "HostTensor" and value.dtype .. tostring(value.shape) or ""
      orrery.log("%s %s %s %s", what, name, dims, text(dims == "" and value or value:tolist()))
    end
  end
  for step = 1, 2 do show("step " .. step, run:step(batch_of(step, 9))) end  -- the last leaf is padded
  show("eval", run:eval(batch_of(3, 16)))
end

if args.case == "equal" then
  local stacks = { { strategy.data {} }, { strategy.data {}, strategy.accumulate {} },
    { strategy.data {}, strategy.zero { stage = 3 } }, { strategy.data {}, strategy.recompute {} } }
  if n > 1 then
    stacks[#stacks + 1] = { strategy.pipeline { size = n == 3 and 3 or 2 }, strategy.data {} }
    stacks[#stacks + 1] = { strategy.tensor { size = n, column = "b", row = "c" } }
  end
  for i, stack in ipairs(stacks) do
    train(stack, 3, i == 5)
    orrery.log "--"
  end
  -- A parameter is sent as the value that it has.
  local w = orrery.parameter({ 2 }, { init = 5 + world.rank })
  if n > 1 and world.rank == 0 then world:send(w, { to = 1 }) end
  if world.rank == 1 then assert(world:recv(w, { from = 0 }):tolist()[2] == 5) end
elseif args.case == "served" then
  train { strategy.server { mode = "async" } }
elseif args.case == "staged" then
  train { strategy.pipeline {} }
elseif args.case == "send" then
  local model = Net()
  orrery.compile(function(b) return model(b.x):mean() end, { params = model, optimizer = optim.sgd {},
    microbatches = n, strategy = { strategy.data {}, strategy.zero { stage = 3 } } }):step(batch_of(1, 8))
  world:send(model.b.weight, { to = (world.rank + 1) % n })
elseif args.case == "written" or args.case == "broadcast" then
  orrery.seed(args.case == "written" and 1 or world.rank)
  local model = Net()
  if world.rank == 1 then model.a.bias:write { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 } end
  if args.case == "broadcast" then world:broadcast(model, { root = 1 }) end
  orrery.seed(1)
  orrery.compile(function(b) return model(b.x):mean() end,
    { params = model, optimizer = optim.sgd {} }):step(batch_of(1, 8))
elseif args.case == "seed" then
  train({ strategy.data {} }, world.rank + 1)
elseif args.case == "data" then
  orrery.seed(1)
  local model = Net()
  local run = orrery.compile(function(b) return model(b.x):mean() end,
    { params = model, optimizer = optim.sgd {}, strategy = strategy.data {}, microbatches = n })
  run:step(batch_of(1, 8))
  run:step(batch_of(1 + world.rank, 8))
elseif args.case == "collected" then
  -- A constant that another run has used on one rank alone, because its garbage was collected on the others.
  local shift = orrery.tensor({ 0.5, -0.25, 1, 2 }, "f32")
  local function trained()
    local model = Net()
    local run = orrery.compile(function(b) return (model(b.x) + shift):mean() end,
      { params = model, optimizer = optim.sgd {}, strategy = strategy.data {}, microbatches = n })
    run:step(batch_of(1, 8))
    return run
  end
  local kept = trained() -- luacheck: ignore
  if world.rank > 0 then
    kept = nil
    for _ = 1, 2 do collectgarbage() end
  end
  trained()
elseif args.case == "extra" then
  local extra = world.rank == 1 and nn.linear(2, 2) -- luacheck: ignore
  local model = Net()
  orrery.compile(function(b) return model(b.x):mean() end,
    { params = model, optimizer = optim.sgd {} }):step(batch_of(1, 8))
end
