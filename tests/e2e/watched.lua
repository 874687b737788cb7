-- SPDX-License-Identifier: Apache-2.0
--
-- Values that steps print and record, under every stack that fits the number of ranks, with and without them: the
-- digest of the trained model, what was recorded, and in one run the tensors themselves, from which the test computes
-- the numbers again.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { case = "equal" }
local n = orrery.world.size
local watching, keep = false, {}

local function look(x, name)
  if not watching then return x end
  if name == "hidden" then orrery.print(x, name) end
  keep[name] = x
  return orrery.watch(x, name)
end

local Net = nn.module("Net", function(m)
  m.a, m.b, m.c, m.d = nn.linear(3, 12), nn.linear(12, 12), nn.linear(12, 12), nn.linear(12, 4)
  return function(x)
    x = look(nn.tanh(m.a(x)), "hidden")
    x = nn.tanh(look(m.c(nn.gelu(look(m.b(x), "inner"))), "hidden"))
    return m.d(x)
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
  if type(value) ~= "table" then return ("%.17g"):format(value) end
  local words = {}
  for i, each in ipairs(value) do words[i] = text(each) end
  return table.concat(words, " ")
end

local function compiled(stack, fetched)
  orrery.seed(3)
  local model = Net()
  local run = orrery.compile(function(b)
    keep = {}
    local logits = model(b.x)
    look(b.y, "labels")
    look((b.x - 0.2):log(), "odd") -- NaN, and minus infinity
    look(logits:transpose(1, 2), "flipped")
    look(logits:mean(), "one")
    look(logits:sum(1), "rows")
    return nn.cross_entropy(logits, b.y), fetched and {
      ["tensor inner"] = keep.inner, ["tensor labels"] = keep.labels, ["tensor odd"] = keep.odd,
      ["tensor flipped"] = keep.flipped, ["tensor one"] = keep.one, ["tensor rows"] = keep.rows,
      ["tensor hidden#2"] = keep.hidden } or nil
  end, { params = model, optimizer = optim.adam { lr = 0.01 }, microbatches = 8, strategy = stack })
  return model, run
end

local function train(stack, fetched)
  local model, run = compiled(stack, fetched)
  local function show(what, result)
    for _, name in ipairs(result:names()) do
      local value = result:get(name)
      local tensor = orrery.type(value) == "HostTensor"
      if name ~= "loss" and name ~= "grad_norm" then
        orrery.log("%s %s = %s", what, name, text(tensor and value:tolist() or value))
      end
    end
  end
  for step = 1, 2 do show("step " .. step, run:step(batch_of(step, 9))) end -- the last leaf is padded
  show("eval", run:eval(batch_of(3, 16)))
  orrery.log("digest %s", orrery.digest(model))
end

local stacks = {
  { strategy.data {} }, { strategy.data {}, strategy.accumulate {} },
  { strategy.data {}, strategy.zero { stage = 3 } }, { strategy.data {}, strategy.recompute {} },
  { strategy.data {}, strategy.diloco { every = 1 } },
}
if n > 1 then
  stacks[#stacks + 1] = { strategy.tensor { size = n, column = "b", row = "c" } }
  stacks[#stacks + 1] = { strategy.pipeline { size = n == 3 and 3 or 2 }, strategy.data {} }
end

if args.case == "equal" then
  for _, stack in ipairs(stacks) do
    for _, now in ipairs { false, true } do
      watching = now
      orrery.log(now and "watched" or "plain")
      train(stack)
    end
    orrery.log "--"
  end
elseif args.case == "fetched" then
  watching = true
  train { strategy.data {} }
  orrery.log "--"
  train({ strategy.data {} }, true)
elseif args.case == "function" then
  local twice = orrery.func(function(x)
    orrery.print(x * 2, "double")
    orrery.watch(x, "given")
    return x + 1, x - 1
  end)
  local a, b = twice(orrery.tensor { 1.0, 2.0, 4.0 })
  twice(orrery.tensor { 1.0, 0 / 0, 1 / 0 })
  orrery.log("%s | %s", text(a:tolist()), text(b:tolist()))
  orrery.print(orrery.tensor { 1.0, 3.0 }, "now")
  orrery.print(orrery.parameter({ 2 }, { init = 5 }))
elseif args.case == "name" then
  orrery.func(function(x) return orrery.watch(x, "") end)(orrery.tensor { 1.0 })
elseif args.case == "outside" then
  orrery.watch(orrery.tensor { 1.0 }, "x")
elseif args.case == "served" then
  watching = true
  train { strategy.server { mode = "async" } }
end
