-- SPDX-License-Identifier: Apache-2.0
--
-- Its evaluation reads, in the first part of the model, a parameter that training reads in the second part only.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { pipe = 1 }
orrery.seed(1)

local gain
local First = nn.module("First", function(m)
  m.fc = nn.linear(3, 3)
  return function(x)
    if orrery.training() then return m.fc(x) end
    return m.fc(x) * gain:sum()
  end
end)
local Second = nn.module("Second", function(m)
  m.fc, m.gain = nn.linear(3, 1), nn.parameter({ 3 }, { init = nn.init.constant(0.5) })
  gain = m.gain
  return function(x) return m.fc(x * m.gain) end
end)
local model = nn.sequential { First(), Second() }
local run = orrery.compile(function(b) return model(b.x):mean() end, {
  params = model, optimizer = optim.sgd { lr = 0.1 }, microbatches = 2,
  strategy = { strategy.pipeline { size = args.pipe } },
})
local batch = { x = { { 1.0, -2.0, 0.5 }, { 0.3, 0.2, 0.1 }, { -1.0, 0.5, 2.5 } } }
run:step(batch)
orrery.log("eval %.6f", run:eval(batch):mean())
