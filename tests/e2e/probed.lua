-- SPDX-License-Identifier: Apache-2.0
--
-- Values and gradients that a step is asked for, under every stack that fits the number of ranks, beside the same
-- from second results and value_and_grad, and losses from which the test makes finite differences.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { case = "equal" }
local n = orrery.world.size

local Net = nn.module("Net", function(m)
  m.a, m.b, m.c, m.d = nn.linear(3, 12), nn.linear(12, 12), nn.linear(12, 12), nn.linear(12, 4)
  m.mid = nn.sequential { nn.gelu, nn.linear(12, 12) }
  return function(x, shift)
    local b = m.b(nn.tanh(m.a(x)))
    if shift then b = b + shift end
    x = orrery.watch(m.c(nn.gelu(b)), "seen")
    return m.d(m.d.weight:mean() * 0.1 + nn.tanh(m.mid(m.mid(x)) + x))
  end
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
  return table.concat(words, " ")
end

local names = { "a", "b", "mid", "mid#2", "mid.2", "Net", "Net.seen", "grad b", "grad mid", "grad mid#2",
  "grad Net.seen", "grad a.weight", "grad d.bias", "grad mid.2.weight" }

local function compiled(stack, second)
  orrery.seed(3)
  local model = Net()
  local run = orrery.compile(function(b)
    local logits = model(b.x)
    return nn.cross_entropy(logits, b.y), second and { logits = logits }
  end, { params = model, optimizer = optim.adam { lr = 0.01 }, microbatches = 8, strategy = stack })
  return model, run
end

local function train(stack, asked)
  local model, run = compiled(stack)
  for step = 1, 3 do
    if asked and step == 2 then run:probe(asked) end
    local result = run:step(batch_of(step, 9)) -- the last leaf is padded
    for _, name in ipairs(result:names()) do
      local value = result:get(name)
      if orrery.type(value) == "HostTensor" then
        orrery.log("%s %s%s = %s", name, value.dtype, tostring(value.shape), text(value:tolist()))
      end
    end
  end
  orrery.log("digest %s", orrery.digest(model))
end

local stacks = {
  { strategy.data {} }, { strategy.data {}, strategy.accumulate {} },
  { strategy.data {}, strategy.zero { stage = 3 } }, { strategy.data {}, strategy.recompute {} },
}
if n > 1 then
  stacks[#stacks + 1] = { strategy.tensor { size = n, column = "b", row = "c" } }
  stacks[#stacks + 1] = { strategy.pipeline { size = n == 3 and 3 or 2 }, strategy.data {} }
end

if args.case == "equal" then
  for _, stack in ipairs(stacks) do
    train(stack)
    train(stack, names)
    orrery.log "--"
  end
elseif args.case == "oracle" then
  -- The first step of a run that was asked, then losses with one element of b's output moved.
  local _, run = compiled { strategy.data {} }
  run:probe(names)
  local result = run:step(batch_of(1, 9))
  for _, name in ipairs { "Net", "grad b", "grad a.weight" } do
    orrery.log("%s = %s", name, text(result:get(name):tolist()))
  end
  assert(#run:step(batch_of(2, 9)):names() == #{ "loss", "grad_norm", 1, 2, 3, 4, 5, 6 })
  local model, second = compiled({ strategy.data {} }, true)
  orrery.log("logits = %s", text(second:step(batch_of(1, 9)):get "logits":tolist()))
  model = compiled { strategy.data {} }
  local derive = orrery.value_and_grad(function(b) return nn.cross_entropy(model(b.x), b.y) end, model)
  local loss, gradients = derive(batch_of(1, 9))
  orrery.log("%.9g gradient = %s", loss, text(gradients[2]:read():tolist()))
  local moved = orrery.func(function(x, y, shift) return nn.cross_entropy(model(x, shift), y):sum() end)
  local batch = batch_of(1, 9)
  for i = 1, 9 * 12, 7 do
    local losses = {}
    for side = -1, 1, 2 do
      local shift = {}
      for r = 1, 9 do
        shift[r] = {}
        for c = 1, 12 do shift[r][c] = (r - 1) * 12 + c == i and side * 0.01 or 0.0 end
      end
      losses[#losses + 1] = moved(batch.x, batch.y, orrery.tensor(shift, "f32")):item()
    end
    orrery.log("difference %d = %.9g", i - 1, (losses[2] - losses[1]) / 0.02)
  end
elseif args.case == "scaled" then
  local half = strategy.precision { compute = "f16", loss_scale = 1024 }
  for _, stack in ipairs { { strategy.data {} }, { strategy.data {}, half } } do
    train(stack, { "grad b" })
  end
elseif args.case == "unknown" then
  train({ strategy.data {} }, { "blocks" })
elseif args.case == "parameter" then
  train({ strategy.data {} }, { "grad a.bogus" })
elseif args.case == "input" then
  local model = nn.linear(3, 4)
  local run = orrery.compile(function(b)
    return nn.cross_entropy(model(b.x) + orrery.watch(b.y, "still"):mean(), b.y)
  end, { params = model, optimizer = optim.sgd {} })
  run:probe { "grad still" }
  run:step(batch_of(1, 8))
elseif args.case == "served" then
  local model = nn.sequential { nn.linear(3, 4) }
  local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end,
    { params = model, optimizer = optim.sgd {}, strategy = strategy.server { mode = "async" } })
  run:probe { "1" }
  run:step(batch_of(1, 8))
end
