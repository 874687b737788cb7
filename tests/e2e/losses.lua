-- SPDX-License-Identifier: Apache-2.0
--
-- One step of stochastic gradient descent, of rate 1 and in f64, for each loss of a file: a line is an expression of
-- the terms below. Prints the loss, and every parameter after the step, under the strategy that the caller puts where
-- STACK stands. losses_test.py computes the same in plain Python.
local orrery = require "orrery"
local nn, optim, strategy, world = orrery.nn, orrery.optim, orrery.strategy, orrery.world
local args = orrery.args { losses = "", microbatches = 4, rows = 10 }
local TIME, INPUTS, HIDDEN, CLASSES = 3, 3, 2, 4

local function filled(dims, at)
  local number = 0
  local function level(depth)
    if depth > #dims then
      number = number + 1
      return math.sin(at + 0.7 * number)
    end
    local list = {}
    for i = 1, dims[depth] do list[i] = level(depth + 1) end
    return list
  end
  return orrery.tensor(level(1), "f64")
end
local function show(list, into)
  for _, v in ipairs(list) do
    if type(v) == "table" then show(v, into) else into[#into + 1] = ("%.17g"):format(v) end
  end
end
local function param(dims, at)
  local p = orrery.parameter(dims, { dtype = "f64", init = 0 })
  p:write(filled(dims, at))
  return p
end
local Net = nn.module("Net", function(m)
  m.first = nn.module("First", function(f)
    f.w = param({ INPUTS, HIDDEN }, 1)
    return function(x) return x:matmul(f.w):tanh() end
  end)()
  m.second = nn.module("Second", function(s)
    s.w, s.s = param({ HIDDEN, CLASSES }, 2), param({ 1 }, 3)
    return function(h) return h:matmul(s.w) end
  end)()
  return function(x)
    local h = m.first(x)
    return h, m.second(h)
  end
end)

local function numbers(rows, of)
  local list = {}
  for b = 1, rows do
    list[b] = {}
    for t = 1, TIME do list[b][t] = of(b, t) end
  end
  return list
end
local function batch(rows)
  local function label(skip) return function(b, t) return (b * 5 + t * skip) % 3 == 0 and -100 or (b + t * skip) % CLASSES end end
  return {
    x = filled({ rows, TIME, INPUTS }, 4), y = numbers(rows, label(1)), y2 = numbers(rows, label(2)),
    w = orrery.tensor(numbers(rows, function(b, t) return ((b * 3 + t) % 5) / 4 end), "f64"),
  }
end

local function terms(model, b)
  local h, g = model(b.x)
  local mask = b.y:ne(-100):cast "f64"
  local s = model.second.s:reshape {}
  return {
    ce = nn.cross_entropy(g, b.y, { ignore = -100 }), ce2 = nn.cross_entropy(g * 0.5, b.y2, { ignore = -100 }),
    cw = nn.cross_entropy(g, b.y:maximum(0), { weights = b.w }), mse = (g * g):mean(), hm = h:mean(),
    sa = ((h * h):sum(-1) * mask):sum(), sb = (g:sum(-1) * b.w):sum(), sm = mask:sum(), sw = b.w:sum(),
    pw = (model.second.w * model.second.w):sum(), ps = s,
    add = function(u, v) return u + v end, sub = function(u, v) return u - v end,
    mul = function(u, v) return u * v end, div = function(u, v) return u / v end,
    sqrt = function(u) return u:sqrt() end, exp = function(u) return u:exp() end,
    most = function(u, v) return u:maximum(v) end,
  }
end

local function step(line, number)
  local model = Net()
  local run = orrery.compile(function(b)
    return assert(load("return " .. line, line, "t", terms(model, b)))()
  end, { params = model, optimizer = optim.sgd { lr = 1 }, microbatches = args.microbatches, strategy = STACK })
  local ok, result = pcall(run.step, run, batch(args.rows))
  if not ok then return orrery.log("%d refused %s", number, tostring(result):gsub("\n.*", "")) end
  local found = {}
  for _, p in ipairs { model.first.w, model.second.w, model.second.s } do show(p:read():tolist(), found) end
  orrery.log("%d loss %.17g after %s", number, result:mean(), table.concat(found, " "))
end

local number = 0
for line in io.lines(args.losses) do
  number = number + 1
  step(line, number)
end
