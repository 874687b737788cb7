-- SPDX-License-Identifier: Apache-2.0
--
-- Trains and evaluates a model in two stages whose normalisation nobody reads: in training it changes buffers, which an
-- evaluation only computes with, for nobody.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { pipe = 1 }
orrery.seed(1)

local Model = nn.module("Model", function(m)
  m.gain = nn.parameter({ 3 }, { init = nn.init.constant(0.5) })
  m.norm, m.table = nn.batchnorm(3), nn.embedding(5, 4)
  return function(batch)
    m.norm(batch.x)
    m.table(batch.i)
    return (m.gain:tanh():sum { 1 } * batch.x:tanh():sum { 2 }):mean()
  end
end)
local model = Model()
local run = orrery.compile(model, {
  params = model, optimizer = optim.sgd { lr = 0.1 }, microbatches = 2,
  strategy = { strategy.pipeline { size = args.pipe } },
})
local batch = { x = { { 1.0, -2.0, 0.5 }, { 0.3, 0.2, 0.1 }, { -1.0, 0.5, 2.5 } }, i = orrery.tensor({ 0, 3, 4 }, "i32") }
orrery.log("step %.6f", run:step(batch):mean())
orrery.log("eval %.6f", run:eval(batch):mean())
orrery.log("digest %s", orrery.digest(model))
