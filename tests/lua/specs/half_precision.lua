-- SPDX-License-Identifier: Apache-2.0
--
-- What strategy.precision would compute in f16 stays in f32 where a number would be lost, and states stay what they are.
local orrery = require "orrery"
local nn = orrery.nn

local model = nn.module("model", function(m)
  m.gain = nn.linear(1, 1, { bias = false, init = nn.init.constant(0.5) })
  return function(x) return m.gain(x) * 1e-8 end
end)()
local run = orrery.compile(function(b) return (model(b.x) * 1e8):mean() end, {
  params = model, optimizer = orrery.optim.sgd { lr = 0.0 },
  strategy = { orrery.strategy.precision { compute = "f16", loss_scale = 1 } },
})
local loss = run:step({ x = { { 1.0 }, { 3.0 } } }):mean()
assert(math.abs(loss - 1) < 1e-3, loss)

-- A state in f32 whose new value is computed in 16 bits, and read by what follows too.
local Power = nn.module("Power", function(m)
  m.matrix, m.vector = nn.parameter({ 2, 2 }), orrery.buffer({ 2 }, { init = 1 })
  return function(x)
    local next = m.matrix:matmul(m.vector:updated():reshape(2, 1)):reshape(2) * 0.5
    m.vector:update(next)
    return x:matmul(m.matrix) * (next:reshape(1, 2):matmul(m.matrix)):sum()
  end
end)
local power = Power()
power.matrix:write { { 4.0, 2.0 }, { 1.0, 3.0 } }
local twice = orrery.compile(function(b) return (power(b.x) + power(b.x)):mean() end, {
  params = power, optimizer = orrery.optim.sgd { lr = 0.0 }, strategy = { orrery.strategy.precision {} },
})
twice:step { x = { { 1.0, 3.0 } } }
local vector = power.vector:read():tolist()
assert(vector[1] == 8 and vector[2] == 4.5, tostring(power.vector:read()))
