-- SPDX-License-Identifier: Apache-2.0
--
-- Two vectors under one of the optimizers, whose gradients do not depend on them. Steps say which of the two is frozen,
-- which steps a loss scale takes back, how many samples there are and after which step the run is saved and loaded. Prints
-- both vectors after each step. counted_test.py has the same by the formulas.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  kind = "adamw", stack = "strategy.data {}", steps = 8, microbatches = 3, frozen = "", bad = "", rows = "", again = 0,
  folder = "", attached = false, uncounted = false, dtype = "f32",
}

local function listed(list, step)
  local words = {}
  for word in list:gmatch "[^,]+" do words[#words + 1] = word end
  return words[step]
end

-- Adam as it was before updates were counted: a checkpoint of it has no counts.
local uncounted = optim.define("adamw", {
  options = { lr = 0.001, b1 = 0.9, b2 = 0.999, decay = 0.01 }, states = { "m", "v" },
  scalars = function(step, o) return { c1 = 1 / (1 - o.b1 ^ step), c2 = 1 / (1 - o.b2 ^ step) } end,
  update = function(p, g, s, o)
    local m, v = s.m * o.b1 + g * (1 - o.b1), s.v * o.b2 + g * g * (1 - o.b2)
    return p - ((m * o.c1) / ((v * o.c2):sqrt() + 1e-8) + p * o.decay) * o.lr, { m = m, v = v }
  end,
})

-- Kinds with options of their own.
local others = {
  damped = function(o) o.dampening = 0.75 return optim.momentum(o) end,
  radam_short = function(o) o.b2 = 0.9 return optim.radam(o) end,
  rprop = function(o) return optim.rprop { lr = o.lr, groups = { { match = "b", lr = 0.05 } } } end,
}

local function optimizer(old)
  local lr = optim.linear { peak = 0.1, steps = 20 }
  local groups = { { match = "b", decay = 0, lr = 0.05 } }
  if old then return uncounted { lr = lr, decay = 0.1, groups = groups } end
  return (others[args.kind] or optim[args.kind]) { lr = lr, decay = 0.1, groups = groups }
end

local Net = nn.module("net", function(m)
  m.a = nn.parameter({ 3 }, { init = nn.init.constant(0.5), dtype = args.dtype })
  m.b = nn.parameter({ 2 }, { init = nn.init.constant(-0.25), dtype = args.dtype })
  local slopes = { a = orrery.tensor({ 1, -2, 0.5 }, args.dtype), b = orrery.tensor({ 3, 0.125 }, args.dtype) }
  return function(batch)
    return (batch.x * ((m.a * slopes.a):sum() + (m.b * slopes.b):sum())):mean()
  end
end)

local function make(old)
  local net = Net()
  if args.attached then return net, optimizer(old):attach(net), orrery.value_and_grad(net, net) end
  return net, orrery.compile(net, {
    params = net, optimizer = optimizer(old), microbatches = args.microbatches,
    strategy = load("local strategy = ...; return {" .. args.stack .. "}")(strategy),
  })
end

local function batch_of(step)
  local x = {}
  for i = 1, tonumber(listed(args.rows, step) or 6) do x[i] = ((step * 5 + i * 3) % 7 - 2) / 2 end
  if listed(args.bad, step) == "1" then x[1] = 1e37 end -- times the loss scale it is infinite
  return { x = orrery.tensor(x, args.dtype) }
end

local net, run, gradients_of = make(args.uncounted)
for step = 1, args.steps do
  local frozen = listed(args.frozen, step) or "-"
  net.a:freeze(frozen:find "a" ~= nil)
  net.b:freeze(frozen:find "b" ~= nil)
  if args.attached then
    local gradients = {}
    for i, g in ipairs(select(2, gradients_of(batch_of(step)))) do gradients[i] = g end
    run:update(gradients)
  else
    run:step(batch_of(step))
  end
  local numbers = {}
  for _, p in ipairs { net.a, net.b } do
    for _, value in ipairs(p:read():tolist()) do numbers[#numbers + 1] = ("%.17g"):format(value) end
  end
  orrery.log("values %s", table.concat(numbers, " "))
  if step == args.again then
    local a, b = net.a:read(), net.b:read()
    run:save(args.folder)
    net, run, gradients_of = make(false)
    if args.attached then net.a:write(a) net.b:write(b) end
    run:load(args.folder)
  end
end
