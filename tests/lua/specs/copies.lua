-- SPDX-License-Identifier: Apache-2.0
--
-- Copies of models have their values and none of their parameters; averages of models that are stepped by hand.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local Tied = nn.module("Tied", function(m, options)
  m.embed = nn.embedding(5, options.dim)
  m.parts = { nn.linear(options.dim, options.dim), nn.batchnorm(options.dim), nn.weight_norm(nn.linear(options.dim, options.dim)) }
  m.decode = nn.linear(options.dim, 5, { tie = m.embed.weight, bias = false })
  return function(ids)
    local x = m.embed(ids)
    for _, part in ipairs(m.parts) do x = part(x) end
    return m.decode(x)
  end
end)
local model = nn.sequential { Tied { dim = 3 }, nn.relu, nn.dropout(0.5), nn.sequential(2, function() return nn.linear(5, 5) end) }
model[1].embed.weight:freeze()
local copy = nn.copy(model)
local ids = orrery.tensor { 0, 3, 4 }
local from, to = orrery.parameters(model), orrery.parameters(copy)
assert(#from == #to and #from > 8)
for i, parameter in ipairs(from) do
  assert(parameter ~= to[i] and parameter.name == to[i].name and parameter.frozen == to[i].frozen, parameter.name)
end
assert(copy[1].embed.weight == copy[1].decode.weight and copy[1].embed.weight.frozen)
assert(orrery.digest(copy) == orrery.digest(model))
assert(table.concat(copy(ids):tolist()[2], " ") == table.concat(model(ids):tolist()[2], " "))
copy[4][2].bias:write { 1.0, 2.0, 3.0, 4.0, 5.0 }
assert(orrery.digest(copy) ~= orrery.digest(model))

-- What is shared among the arguments is shared in the copy; tensors are copied with their dtype.
local part = nn.linear(2, 2)
local twice = nn.copy(nn.sequential { part, part })
assert(twice[1].weight == twice[2].weight and twice[1].weight ~= part.weight)
local Own = nn.module("Own", function(m, state)
  m.state = state
  return function(x) return x * m.state end
end)
local buffer = orrery.buffer({ 2 }, { dtype = "f64", init = 3 })
local own = nn.copy(Own(buffer))
assert(own.state ~= buffer and own.state.dtype == "f64" and not own.state.trained and own.state:read():tolist()[2] == 3)

local function refused(words, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and message:find(words, 1, true), ("'%s', expected '%s'"):format(tostring(message), words))
end
local outside = nn.linear(2, 2)
local Outside = nn.module("Outside", function(m)
  m.part = outside
  return function(x) return m.part(x) end
end)
refused("copy: the part 'part.bias' was made outside of the constructor of 'Outside': give it to the constructor", nn.copy, Outside())
local later = nn.linear(2, 2)
later.more = nn.linear(2, 2)
refused("copy: the part 'more.bias' was not made by the constructor of 'linear'", nn.copy, later)
refused("nn.copy: model is a table, expected a module", nn.copy, {})
refused("nn.averaged: decay is a table, expected a number or true or false", nn.averaged, part, { decay = {} })
refused("averaged: decay is true, expected a number of at least 0 and less than 1, or false", nn.averaged, part, { decay = true })
refused("averaged: decay is 1, expected", nn.averaged, part, { decay = 1 })
refused("averaged: every = 0, expected at least 1", nn.averaged, part, { every = 0 })

-- By an attached optimizer: the first value, then halves. An average of 16 bits is rounded once.
local function near(a, b) assert(math.abs(a - b) < 1e-6, ("%g, expected %g"):format(a, b)) end
local line = nn.linear(1, 1, { bias = false })
line.weight:write { { 4.0 } }
local half = nn.averaged(line, { decay = 0.5 })
local mean = nn.averaged(line, { decay = false, name = "mean" })
local sgd = optim.sgd { lr = 1 }:attach(line)
for step, wanted in ipairs { { 3, 3 }, { 2.5, 2.5 }, { 1.75, 2 }, { 0.875, 1.5 } } do
  sgd:update { orrery.tensor({ { 1.0 } }, "f32") }
  near(line.weight:read():item(), 4 - step)
  near(half.weight:read():item(), wanted[1])
  near(mean.weight:read():item(), wanted[2])
end
assert(half.weight.frozen and half.weight.name == "averaged.weight" and mean.weight.name == "mean.weight")

-- By L-BFGS.
local bowl = nn.linear(1, 1, { bias = false })
bowl.weight:write { { 9.0 } }
local late = nn.averaged(bowl, { decay = 0.75, from = 2 })
local lbfgs = optim.lbfgs(function(b) return (bowl(b.x) - b.x):pow(2):mean() end, { params = bowl, max_iter = 1, lr = 0.1 })
local wanted = 9
for step = 1, 4 do
  lbfgs:step { x = { { 1.0 }, { 2.0 } } }
  local now = bowl.weight:read():item()
  wanted = step == 2 and now or step > 2 and 0.75 * wanted + 0.25 * now or wanted
  assert(now < 9)
  near(late.weight:read():item(), wanted)
end

-- One that a run does not know is refused by its next step.
local net = nn.linear(1, 1)
local run = orrery.compile(function(b) return nn.mse(net(b.x), b.x) end, { params = net, optimizer = optim.sgd { lr = 0.1 } })
local batch = { x = { { 1.0 } } }
run:step(batch)
nn.averaged(nn.linear(1, 1))
run:step(batch)
nn.averaged(net)
refused("averaged: the average was made after the first step of this run", run.step, run, batch)
