-- SPDX-License-Identifier: Apache-2.0
--
-- What strategy.precision would compute in f16 stays in f32 where a number would be lost.
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
