-- SPDX-License-Identifier: Apache-2.0
--
-- nn.weight_norm and nn.spectral_norm: they begin with the layer's weight, the power iteration goes on in training only, by
-- a loop in double precision here, and what they refuse.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local x = { { 1.0, -2.0, 0.5 }, { 0.25, 3.0, -1.0 } }
local function results(layer) return orrery.func(function(s) return layer(s) end)(orrery.tensor(x, "f32")):tolist() end
local function near(found, wanted, what)
  for i, value in ipairs(wanted) do
    if type(value) == "table" then
      near(found[i], value, what)
    else
      assert(math.abs(found[i] - value) <= 2e-6 * math.max(1, math.abs(value)), ("%s: %.9g, expected %.9g"):format(what, found[i], value))
    end
  end
end

-- The weight is no parameter any more, and the layer computes what it did.
local layer = nn.linear(3, 4)
local before = results(layer)
local normed = nn.weight_norm(layer)
near(results(normed), before, "weight_norm")
local names = {}
for _, parameter in ipairs(orrery.parameters(normed)) do names[#names + 1] = parameter.name end
assert(table.concat(names, " ") == "layer.bias weight_g weight_v")

-- The largest singular value, by many iterations.
local function unit(a)
  local squares = 0
  for _, value in ipairs(a) do squares = squares + value * value end
  for i, value in ipairs(a) do a[i] = value / math.sqrt(squares) end
  return a, math.sqrt(squares)
end
local function times(w, a, transposed)
  local y = {}
  for i = 1, transposed and #w[1] or #w do
    y[i] = 0
    for j, value in ipairs(a) do y[i] = y[i] + (transposed and w[j][i] or w[i][j]) * value end
  end
  return y
end

local plain = nn.linear(3, 4, { bias = false })
local weight = plain.weight:read():tolist()
local unscaled = results(plain)
local spectral = nn.spectral_norm(plain, { iterations = 2 })
local u, v = spectral.u:read():tolist(), spectral.v:read():tolist()
results(spectral)
near(spectral.u:read():tolist(), u, "u after an evaluation")

-- A step from here on: two iterations, then the gradient, in which u and v are constants.
local run = orrery.compile(function(b) return spectral(b.x):sum() end, { params = spectral, optimizer = optim.sgd { lr = 0.1 } })
spectral.u:write { 1.0, 0.5, -0.5, 0.25 }
spectral.v:write { 0.0, 0.6, 0.8 }
u, v = { 1, 0.5, -0.5, 0.25 }, { 0, 0.6, 0.8 }
for _ = 1, 2 do
  u = unit(times(weight, v))
  v = unit(times(weight, u, true))
end
local sigma, sum, inputs = 0, 0, {}
for i, row in ipairs(times(weight, v)) do sigma = sigma + u[i] * row end
for j = 1, 3 do inputs[j] = x[1][j] + x[2][j] end
for i = 1, 4 do
  for n = 1, 2 do sum = sum + unscaled[n][i] / sigma end
end
near({ run:step({ x = x }):mean() }, { sum }, "spectral_norm's loss")
near(spectral.u:read():tolist(), u, "u")
near(spectral.v:read():tolist(), v, "v")
local moved = spectral.weight:read():tolist()
for i = 1, 4 do
  for j = 1, 3 do
    local slope = inputs[j] / sigma - sum / sigma * u[i] * v[j]
    near({ moved[i][j] }, { weight[i][j] - 0.1 * slope }, "a weight after the step")
  end
end

-- Called twice in a step it goes on twice; an error in the layer leaves none of the weight behind.
local twice = nn.spectral_norm(nn.linear(3, 3))
local first = twice.u:read():tolist()
local w = twice.weight:read():tolist()
u, v = first, twice.v:read():tolist()
orrery.compile(function(b) return twice(twice(b.x)):mean() end, { params = twice, optimizer = optim.sgd {} }):step { x = x }
for _ = 1, 2 do
  u = unit(times(w, v))
  v = unit(times(w, u, true))
end
near(twice.u:read():tolist(), u, "u of two calls")
assert(not pcall(results, nn.sequential { nn.linear(3, 2), normed }))
assert(rawget(layer, "weight") == nil)

local function refused(words, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and message:find(words, 1, true), ("'%s', expected '%s'"):format(tostring(message), words))
end
refused("weight_norm: Module has no tensor 'weight'", nn.weight_norm, nn.lstm(2, 2))
refused("weight_norm: Module has no tensor 'weight'", nn.weight_norm, layer)
refused("weight_norm: dim = 3 of a part of 2 dims", nn.weight_norm, nn.linear(2, 2), { dim = 3 })
refused("spectral_norm: dim = 1 of a part of 1 dims", nn.spectral_norm, nn.layernorm(2))
refused("spectral_norm: iterations = 0, expected at least 1", nn.spectral_norm, nn.linear(2, 2), { iterations = 0 })
