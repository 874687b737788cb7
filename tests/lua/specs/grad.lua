-- SPDX-License-Identifier: Apache-2.0
--
-- orrery.grad against derivatives by hand.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local function near(got, want, what)
  assert(math.abs(got - want) < 1e-4 * math.max(1, math.abs(want)), ("%s: %g, expected %g"):format(what, got, want))
end
local function numbers(tensor) return tensor:tolist() end

-- A third derivative, one after the other: x^4.
local powers = orrery.func(function(x)
  local one = orrery.grad((x * x * x * x):sum(), { x })[1]
  local two = orrery.grad(one:sum(), { x })[1]
  return one, two, orrery.grad(two:sum(), { x })[1]
end)
local one, two, three = powers(orrery.tensor({ 2.0, -1.0 }, "f32"))
near(numbers(one)[1], 32, "4x^3")
near(numbers(two)[2], 12, "12x^2")
near(numbers(three)[2], -24, "24x")

-- Products with a vector; a value in between and where it comes from, both in one call.
local chain = orrery.func(function(x, v)
  local h = x * x
  local by_h, by_x = table.unpack(orrery.grad(h:exp(), { h, x }, { grad_output = v }))
  return by_h, by_x
end)
local by_h, by_x = chain(orrery.tensor({ 0.5, 1.0 }, "f32"), orrery.tensor({ 2.0, 3.0 }, "f32"))
near(numbers(by_h)[1], 2 * math.exp(0.25), "by h")
near(numbers(by_x)[2], 3 * math.exp(1) * 2, "by x")

-- Steps have slope 0 where they have one.
local steps = orrery.func(function(x) return orrery.grad((x:floor() + x * 3):sum(), { x })[1],
  orrery.grad(x:floor():sum(), { x })[1] end)
local both, flat = steps(orrery.tensor({ 0.5 }, "f32"))
near(numbers(both)[1], 3, "floor(x) + 3x")
near(numbers(flat)[1], 0, "floor(x)")

-- Equal extremes share a gradient, so that a maximum of copies is as steep as one.
local ties = orrery.func(function(x)
  local copies = orrery.concat({ x, x, x }, 1)
  return orrery.grad(x:max(), { x })[1], orrery.grad(copies:min(1):sum(), { x })[1]
end)
local largest, smallest = ties(orrery.tensor({ 2.0, 1.0, 2.0 }, "f32"))
for i, want in ipairs { 0.5, 0, 0.5 } do near(numbers(largest)[i], want, "max of equals") end
for i, want in ipairs { 0, 1, 0 } do near(numbers(smallest)[i], want, "min of copies") end

-- A gradient of the user's own is differentiated by its own rule: dy * y means y' = y, whatever y is made of.
local exponential = orrery.gradient {
  forward = function(x) return (x * 1.0):exp():stop_gradient() end,
  backward = function(dy, y) return dy * y end,
}
local own = orrery.func(function(x)
  local first = orrery.grad(exponential(x):sum(), { x })[1]
  return orrery.grad(first:sum(), { x })[1]
end)
near(numbers(own(orrery.tensor({ 1.5 }, "f32")))[1], math.exp(1.5), "exp, twice")

-- In an optimizer: the derivative of a potential of the parameter.
local net = nn.linear(1, 1, { bias = false })
net.weight:write { { 0.5 } }
local potential = optim.define("potential", {
  update = function(p) return p - orrery.grad((p * p * p):sum(), { p })[1] end,
})
local run = orrery.compile(function(b) return net(b.x):mean() end, { params = net, optimizer = potential {} })
run:step { x = { { 1.0 } } }
near(numbers(net.weight:read())[1][1], 0.5 - 3 * 0.25, "p - 3p^2")

-- Sharpness-aware minimisation as docs/how-to.md writes it, of mean((wx - y)^2): up by rho along the gradient's sign,
-- down by the gradient there.
local rho, rate, w = 0.05, 0.1, 0.3
local xs, ys = { 1.0, 2.0, -1.0 }, { 0.5, 3.0, 1.0 }
local line = nn.linear(1, 1, { bias = false })
line.weight:write { { w } }
local batch = { x = {}, y = {} }
for i = 1, 3 do batch.x[i], batch.y[i] = { xs[i] }, { ys[i] } end
local gradients_of = orrery.value_and_grad(function(b) return nn.mse(line(b.x), b.y) end, line)
local _, gradients = gradients_of(batch)
local kept = orrery.buffer { 1, 1 }
local climb = orrery.func(function()
  kept:update(line.weight)
  line.weight:update(line.weight + gradients[1] * (rho / gradients[1]:sumsq():sqrt()))
end)
local back = orrery.func(function() line.weight:update(kept) end)
local descend = optim.sgd { lr = rate }:attach(line)
local function slope(at)
  local sum = 0
  for i = 1, 3 do sum = sum + 2 * xs[i] * (at * xs[i] - ys[i]) / 3 end
  return sum
end
for _ = 1, 3 do
  gradients_of(batch)
  climb()
  local _, sharp = gradients_of(batch)
  back()
  descend:update(sharp)
  w = w - rate * slope(w + (slope(w) > 0 and rho or -rho))
  near(numbers(line.weight:read())[1][1], w, "a step of SAM")
end

-- Rows that pad the last microbatch are in no sum: of 5 samples in 2 microbatches the derivative of the squared
-- distances from the mean of each is 2 * (x - mean).
local factor = nn.linear(1, 1, { bias = false })
factor.weight:write { { 1.0 } }
local ragged = orrery.compile(function(b)
  local apart = b.x - b.x:microbatch_mean()
  local g = orrery.grad((apart * apart):sum(), { b.x })[1]
  return (factor(g) * g):mean()
end, { params = factor, optimizer = optim.sgd { lr = 0.1 }, microbatches = 2 })
near(ragged:step({ x = { { 1.0 }, { 2.0 }, { 4.0 }, { 1.0 }, { 4.0 } } }):mean(), 22 / 3, "2 (x - mean), squared")

-- A penalty on the slope of a mean: a nonlinear function of what is known after all microbatches.
local slope = nn.linear(1, 1, { bias = false })
slope.weight:write(orrery.tensor({ { 0.4 } }, "f32"))
orrery.compile(function(b)
  local value = slope(b.x):tanh():mean()
  return value + orrery.grad(value, { slope.weight })[1]:sumsq()
end, { params = slope, optimizer = optim.sgd { lr = 1 } }):step { x = { { 1.5 }, { 1.5 } } }
local t = (math.exp(1.2) - 1) / (math.exp(1.2) + 1) -- tanh(0.6)
near(slope.weight:read():item(), 0.4 - 1.5 * (1 - t ^ 2) + 4 * 1.5 ^ 3 * t * (1 - t ^ 2) ^ 2, "penalty on a slope")
