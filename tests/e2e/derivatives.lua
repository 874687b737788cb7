-- SPDX-License-Identifier: Apache-2.0
--
-- Derivatives inside of a loss, trained: prints the results of every step and a digest. The batch of 10 samples
-- is cut into microbatches of 3, so that one is filled up. derivatives_test.py has the same models in Python.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { only = "", zero = 0, precision = false, stages = 0, tensor = 0, recompute = false }

local stack = { strategy.data {} }
if args.zero > 0 then stack[#stack + 1] = strategy.zero { stage = args.zero } end
if args.precision then stack[#stack + 1] = strategy.precision {} end
if args.stages > 0 then table.insert(stack, 1, strategy.pipeline { size = args.stages }) end
if args.tensor > 0 then
  table.insert(stack, 1, strategy.tensor { size = args.tensor, column = { "layers.1" }, row = { "layers.2" } })
end
if args.recompute then stack[#stack + 1] = strategy.recompute {} end

-- scale * sin(first), sin(first + 1), ... of a shape; `columns` left out: of one dim.
local function waves(first, scale, rows, columns)
  local t = {}
  for i = 1, rows do
    if columns then
      t[i] = {}
      for j = 1, columns do t[i][j] = scale * math.sin(first + (i - 1) * columns + j - 1) end
    else
      t[i] = scale * math.sin(first + i - 1)
    end
  end
  return orrery.tensor(t, "f32")
end

local data = orrery.data.arrays {
  real = waves(1, 1, 10, 3), fake = waves(50, 1.5, 10, 3), mix = waves(90, 0.5, 10, 1),
}

local function layer(inputs, outputs, first)
  local l = nn.linear(inputs, outputs)
  l.weight:write(waves(first, 0.7, outputs, inputs))
  l.bias:write(waves(first + 200, 0.3, outputs))
  return l
end

local function inner(a, b) return (a * b):sum() end
local function mean_square(x) return (x * x):mean() end

local cases = {}

-- WGAN-GP (Gulrajani et al., arXiv:1704.00028): the norm of every sample's own derivative goes to 1.
function cases.penalty()
  local m = { layer(3, 4, 300), layer(4, 1, 400) }
  local function critic(x) return m[2](m[1](x):tanh()) end
  return m, function(b)
    local between = b.real * (b.mix + 0.5) + b.fake * (0.5 - b.mix)
    local slope = orrery.grad(critic(between):sum(), { between })[1]
    local norm = (slope * slope):sum(2):sqrt()
    return critic(b.fake):mean() - critic(b.real):mean() + 10 * mean_square(norm - 1), { norm = norm:mean() }
  end
end

-- A classifier that is even in its inputs' neighbourhood (double backpropagation, Drucker and LeCun 1992), through
-- layernorm, gelu and softmax; the derivatives are by a batch field.
function cases.smooth()
  local m = { layer(3, 4, 500), nn.layernorm(4), layer(4, 3, 600) }
  m[2].weight:write(waves(700, 1, 4))
  return m, function(b)
    local p = m[3](m[2](m[1](b.real)):gelu()):softmax()
    local surprise = -((b.fake * b.fake) * p:log()):sum(2)
    local slope = orrery.grad(surprise:sum(), { b.real })[1]
    local bias = orrery.grad(surprise:sum(), { m[2].bias })[1] -- of samples alone, not of what fills up
    return surprise:mean() + mean_square(slope), { bias = bias:sumsq() }
  end
end

-- How the loss changes along a direction, and the Hessian's product with it.
local directions = {}
for k, first in ipairs { 800, 900 } do
  directions[k] = {
    waves(first, 0.2, 4, 3), waves(first + 20, 0.2, 4), waves(first + 30, 0.2, 1, 4), waves(first + 40, 0.2, 1),
  }
end

local function along(gradients, direction)
  local sum = 0
  for i, g in ipairs(gradients) do sum = sum + inner(g, direction[i]) end
  return sum
end

function cases.hessian()
  local m = { layer(3, 4, 300), layer(4, 1, 400) }
  local params = { m[1].weight, m[1].bias, m[2].weight, m[2].bias }
  return m, function(b)
    local loss = mean_square(m[2](m[1](b.real):tanh()) - b.mix)
    local slope = along(orrery.grad(loss, params), directions[1])
    local curvature = along(orrery.grad(slope, params), directions[2])
    return loss + 0.1 * slope, { slope = slope, curvature = curvature }
  end
end

-- As above with a penalty on the weights, which depends on no sample.
function cases.penalised()
  local m = { layer(3, 4, 300), layer(4, 1, 400) }
  local params = { m[1].weight, m[1].bias, m[2].weight, m[2].bias }
  return m, function(b)
    local w = m[1].weight
    local loss = mean_square(m[2]((b.real:matmul(w:tanh(), { transpose_b = true }) + m[1].bias):tanh()) - b.mix) +
      0.1 * (w * w * w):sum()
    local slope = along(orrery.grad(loss, params), directions[1])
    return loss + 0.1 * slope, { slope = slope }
  end
end

-- Sharpness-aware minimisation (Foret et al., arXiv:2010.01412) in one loss, differentiated through the climb: the
-- samples meet weights that are moved along the gradient of the whole batch.
function cases.sharpness()
  local m = { layer(3, 4, 300), layer(4, 1, 400) }
  local params = { m[1].weight, m[1].bias, m[2].weight, m[2].bias }
  local function loss_at(w, b)
    local h = (b.real:matmul(w[1], { transpose_b = true }) + w[2]):tanh()
    return mean_square(h:matmul(w[3], { transpose_b = true }) + w[4] - b.mix)
  end
  return m, function(b)
    local slopes, moved = orrery.grad(loss_at(params, b), params), {}
    local norm = along(slopes, slopes):sqrt()
    for i, g in ipairs(slopes) do moved[i] = params[i] + g * (0.3 / norm) end
    return loss_at(moved, b), { norm = norm }
  end
end

-- By what a layer of the second half takes: a pipeline of two chunks can have it.
function cases.late()
  local m = { layer(3, 4, 300), layer(4, 4, 330), layer(4, 4, 360), layer(4, 1, 400) }
  return m, function(b)
    local h = m[2](m[1](b.real):tanh()):tanh()
    local y = m[4](m[3](h):tanh())
    return mean_square(y - b.mix) + mean_square(orrery.grad(y:sum(), { h })[1])
  end
end

for _, name in ipairs(args.only ~= "" and { args.only } or { "penalty", "smooth", "hessian", "penalised", "sharpness" }) do
  orrery.seed(1)
  local model, loss = cases[name]()
  local run = orrery.compile(loss, {
    params = { layers = model }, microbatches = 4, optimizer = optim.sgd { lr = 0.02 }, strategy = stack,
  })
  for _, batch in data:batches { size = 10, steps = 3, shuffle = false } do
    local result, line = run:step(batch), {}
    for _, key in ipairs(result:names()) do line[#line + 1] = ("%s %.9g"):format(key, result:get(key)) end
    orrery.log("%s: %s", name, table.concat(line, " "))
  end
  orrery.log("%s: %s", name, orrery.digest { layers = model })
end
