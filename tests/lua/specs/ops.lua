-- SPDX-License-Identifier: Apache-2.0
--
-- Ops of the script's own, against figures by hand.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local function near(got, want, what)
  assert(math.abs(got - want) < 1e-5 * math.max(1, math.abs(want)), ("%s: %g, expected %g"):format(what, got, want))
end

local swish = orrery.op {
  name = "swish", options = { beta = 1.0 },
  shape = function(_, x) return x end,
  forward = function(o, x) return x * (x * o.beta):sigmoid() end,
}
-- x / |x| for rows, with a gradient of its own.
orrery.op {
  name = "unit", inputs = 1,
  shape = function(_, x) return x end,
  forward = function(_, x) return x / x:sumsq(-1, { keep = true }):sqrt() end,
  backward = function(_, dy, y, x)
    return (dy - y * (dy * y):sum(-1, { keep = true })) / x:sumsq(-1, { keep = true }):sqrt()
  end,
}

local function sigmoid(x) return 1 / (1 + math.exp(-x)) end
local f = orrery.func(function(x)
  local y = orrery.ops.swish(x, { beta = 2 })
  return y, orrery.grad(y:sum(), { x })[1], swish(x)
end)
local y, slope, plain = f(orrery.tensor({ 0.5, -1.0 }, "f32"))
local s = sigmoid(-2)
near(y:tolist()[2], -s, "swish")
near(slope:tolist()[2], s - 2 * s * (1 - s), "its derivative")
near(plain:tolist()[1], 0.5 * sigmoid(0.5), "the option's default")

-- y = x/r: dy_1/dx_1 = x_2^2/r^3, and again: -3 x_1 x_2^2/r^5.
local g = orrery.func(function(x)
  local first = orrery.grad(orrery.ops.unit(x):slice(2, 1, 1):sum(), { x })[1]
  return first, orrery.grad(first:slice(2, 1, 1):sum(), { x })[1]
end)
local first, second = g(orrery.tensor({ { 3.0, 4.0 } }, "f32"))
near(first:tolist()[1][1], 16 / 125, "unit's derivative")
near(second:tolist()[1][1], -3 * 3 * 16 / 3125, "and its own")

-- It trains as what it is made of does.
local function trained(activation)
  orrery.seed(3)
  local a, b = nn.linear(2, 4), nn.linear(4, 1)
  local model = { a = a, b = b }
  local run = orrery.compile(function(batch) return nn.mse(b(activation(a(batch.x))), batch.y) end,
    { params = model, optimizer = optim.sgd { lr = 0.1 } })
  for _ = 1, 3 do run:step { x = { { 1.0, 2.0 }, { 0.5, -1.0 } }, y = { { 1.0 }, { 0.0 } } } end
  return orrery.digest(model)
end
assert(trained(swish) == trained(function(x) return x * (x * 1.0):sigmoid() end))

local function refused(call, words)
  local ok, message = pcall(call)
  assert(not ok and tostring(message):find(words, 1, true), message)
end
local d = { name = "wide", shape = function(_, x) return { x[1] } end, forward = function(_, x) return x * 2 end }
local wide = orrery.op(d)
refused(function() orrery.func(function(x) return wide(x) end)(orrery.tensor({ { 1.0, 2.0 } }, "f32")) end,
  "ops.wide: shape says [1], but forward made [1,2]")
refused(function() orrery.op(d) end, "op: there is an op 'wide' already, made at ops.lua:")
refused(function() orrery.op { name = "half" } end, "op: shape is missing")
refused(function() orrery.op { name = "a b", shape = print, forward = print } end, "'a b' is no name for orrery.ops")
refused(function() orrery.op { nam = "x" } end, "op: unknown field 'nam' (did you mean 'name'?)")
refused(function() return orrery.ops.swich end, "there is no op ops.swich (did you mean 'swish'?)")
refused(function() orrery.func(function(x) return swish(x, { beta = "1" }) end)(orrery.tensor({ 1.0 }, "f32")) end,
  "ops.swish: beta is 1, expected a value like 1.0")
refused(function() orrery.func(function(x) return swish(x, { bet = 1 }) end)(orrery.tensor({ 1.0 }, "f32")) end,
  "unknown option 'bet'")
refused(function() orrery.func(function() return swish(2) end)() end, "ops.swish: input 1 is")

-- The judge of ops: a good one, a linear one of two inputs, and what is wrong with others.
local function op(name, fields)
  fields.name, fields.examples = name, { { { 3, 2 } }, { { 4 } } }
  fields.shape = fields.shape or function(_, x) return x end
  fields.forward = fields.forward or function(_, x) return x * x * x end
  orrery.op(fields)
end
op("cube", { backward = function(_, dy, _, x) return dy * x * x * 3 end })
orrery.check_op "cube"
orrery.op {
  name = "lerp", inputs = 2, options = { t = 0.25 }, examples = { { { 3, 2 }, { 2 } } },
  shape = function(_, a) return a end, forward = function(o, a, b) return a * (1 - o.t) + b * o.t end,
}
orrery.check_op "lerp"
op("longer", { shape = function(_, x) return { x[1] + 1 } end })
refused(function() orrery.check_op("longer", "shape") end, "ops.longer: shape says [4], but forward made [3,2]")
op("steeper", { backward = function(_, dy, _, x) return dy * x * x * 3.01 end })
refused(function() orrery.check_op "steeper" end, "ops.steeper: the derivative by element 1 of input 1 is")
op("halted", { backward = function(_, dy, _, x) return dy * (x * x * 3):stop_gradient() end })
orrery.check_op("halted", "gradient")
refused(function() orrery.check_op "halted" end, "ops.halted: the second derivative by element 1 of input 1 is 0,")
op("rounded", { forward = function(_, x) return x:stop_gradient() * x end })
refused(function() orrery.check_op "rounded" end, "ops.rounded: the derivative by element 1 of input 1 is")
-- Two results: y1 = x * x and y2 = x * x * x, each with a part of the gradient.
local function powers(name, slope)
  return orrery.op {
    name = name, results = 2, examples = { { { 3, 2 } } },
    shape = function(_, x) return x, x end,
    forward = function(_, x) return x * x, x * x * x end,
    backward = slope and function(_, dy, y, x)
      return (dy[1] and dy[1] * x * 2 or x * 0) + (dy[2] and dy[2] * y[1] * slope or x * 0)
    end,
  }
end
powers("powers", 3)
orrery.check_op "powers"
powers("plain_powers")
orrery.check_op "plain_powers"
local third, sixth = orrery.func(function(x)
  local y1, y2 = orrery.ops.powers(x)
  return orrery.grad((y1 + y2):sum(), { x })[1], orrery.grad(orrery.grad(y2:sum(), { x })[1]:sum(), { x })[1]
end)(orrery.tensor({ 2.0 }, "f32"))
near(third:tolist()[1], 2 * 2 + 3 * 4, "the slope of two results")
near(sixth:tolist()[1], 6 * 2, "the slope of one result's slope")
powers("steep_powers", 3.01)
refused(function() orrery.check_op "steep_powers" end, "ops.steep_powers: the derivative by element 1 of input 1 is")
local powers_of_one = orrery.op {
  name = "powers_of_one", results = 2, shape = function(_, x) return x, x end,
  forward = function(_, x) return x * x end,
}
local one_more = orrery.op {
  name = "one_more", shape = function(_, x) return x end, forward = function(_, x) return x * x, x end,
}
refused(function() orrery.func(function(x) return (powers_of_one(x)) end)(orrery.tensor({ 2.0 }, "f32")) end,
  "ops.powers_of_one: forward returned nil, expected a tensor as result 2 of 2")
refused(function() orrery.func(function(x) return (one_more(x)) end)(orrery.tensor({ 2.0 }, "f32")) end,
  "ops.one_more: forward returned 2 results, the last of them a Tensor: write results = 2")
refused(function() orrery.op { name = "no_result", results = 0, shape = print, forward = print } end,
  "op: results = 0 cannot be, it is at least 1")
refused(function() orrery.check_op "swish" end, "ops.swish has no examples to be tried on")
refused(function() orrery.check_op("cube", "speed") end, "check_op: there is no trial 'speed'")
