-- SPDX-License-Identifier: Apache-2.0
--
-- A generator with batch statistics against a critic with spectral norm and a gradient penalty: two runs in turn, states
-- that a step updates several times, derivatives in the loss. A line for each step: loss, gradient norm. adversarial.py
-- is the same in PyTorch, adversarial.json its figures. With `again`, new models go on from checkpoints in that directory.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { microbatches = 1, stack = "", again = "" }

-- The same numbers in both languages: element i, from 0, of the n-th tensor.
local function filled(n, dims, at)
  local list = {}
  for i = 1, dims[1] do
    local place = (at or 0) * dims[1] + i - 1
    list[i] = #dims == 1 and math.sin(0.7 * place + 1.3 * n) or filled(n, { table.unpack(dims, 2) }, place)
  end
  return list
end

local Spectral = nn.module("Spectral", function(m, inputs, outputs)
  m.weight, m.bias = nn.parameter { outputs, inputs }, nn.parameter { outputs }
  m.vector = orrery.buffer { outputs }
  local function unit(x) return x / (x:sumsq():sqrt() + 1e-12) end
  return function(x)
    local fixed = m.weight:stop_gradient()
    local right = unit(m.vector:updated():reshape(1, outputs):matmul(fixed):reshape(inputs))
    local left = unit(fixed:matmul(right:reshape(inputs, 1)):reshape(outputs))
    if orrery.training() then m.vector:update(left) end
    local norm = (left:reshape(1, outputs):matmul(m.weight):reshape(inputs) * right):sum()
    return x:matmul(m.weight / norm, { transpose_b = true }) + m.bias
  end
end)

local function make()
  local maker = nn.sequential { nn.linear(2, 8), nn.batchnorm(8, { sync = true }), nn.relu, nn.linear(8, 2) }
  local critic = nn.sequential { Spectral(2, 8), nn.tanh, Spectral(8, 1) }
  orrery.parameters { maker = maker, critic = critic }
  local states = { maker[1].weight, maker[1].bias, maker[4].weight, maker[4].bias }
  for _, i in ipairs { 1, 3 } do
    for _, name in ipairs { "weight", "bias", "vector" } do states[#states + 1] = critic[i][name] end
  end
  for n, state in ipairs(states) do state:write(filled(n, state.shape)) end
  local function compile(model, loss)
    return orrery.compile(loss, {
      params = model, optimizer = optim.adam { lr = 0.02, b1 = 0.5 }, microbatches = args.microbatches,
      strategy = load("local strategy = ...; return {" .. args.stack .. "}")(orrery.strategy),
    })
  end
  local told = compile(critic, function(b)
    local fake = maker(b.noise):stop_gradient()
    local mixed = b.real * b.share + fake * (1 - b.share)
    local slope = orrery.grad(critic(mixed):sum(), { mixed })[1]
    local off = slope:sumsq({ 2 }):sqrt() - 1
    return critic(fake):mean() - critic(b.real):mean() + (off * off):mean() * 10
  end)
  return told, compile(maker, function(b) return critic(maker(b.noise)):mean() * -1 end)
end

local told, fooled = make()
local function take(run, batch)
  local result = run:step(batch)
  orrery.log("%.9g %.9g", result:mean(), result:get "grad_norm")
end
for step = 1, 6 do
  local noise = filled(20 + step, { 8, 2 })
  for k = 1, 2 do
    local n = 2 * step + k
    take(told, { noise = noise, real = filled(40 + n, { 8, 2 }), share = filled(60 + n, { 8, 1 }) })
  end
  take(fooled, { noise = noise })
  if step == 3 and args.again ~= "" then
    told:save(args.again .. "/told")
    fooled:save(args.again .. "/fooled")
    told, fooled = make()
    told:load(args.again .. "/told")
    fooled:load(args.again .. "/fooled")
  end
end
