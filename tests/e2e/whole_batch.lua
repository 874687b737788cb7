-- SPDX-License-Identifier: Apache-2.0
--
-- Samples that read the whole batch: embeddings normalised with its mean and variance, each told from all others, under
-- the strategy that the caller puts where STACK stands. Prints the loss and saves the weights.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { steps = 1, save = "", rows = 10, microbatches = 4, layers = 2 }
orrery.seed(5)
local model = nn.module("Model", function(m)
  m.up, m.down = nn.linear(3, 8, { bias = false }), nn.linear(8, 4, { bias = false })
  m.gain = orrery.parameter({ 4 }, { init = 1 })
  return function(x)
    local y = m.down(m.up(x):tanh())
    local away = y - y:mean(1)
    return away * ((away * away):mean(1) + 0.125):rsqrt() * m.gain
  end
end)()
local function loss(batch)
  local z = model(batch.x)
  local logits = z:matmul(z:all_gather("batch"):tanh(), { transpose_b = true })
  return nn.cross_entropy(logits, orrery.sample_index())
end
local run = orrery.compile(loss, {
  params = model, optimizer = optim.sgd { lr = 1 }, microbatches = args.microbatches, strategy = STACK,
})
local x = {}
for i = 1, args.rows do
  x[i] = {}
  for j = 1, 3 do x[i][j] = ((i * 7 + j * 5 + i * i * j) % 11 - 5) / 4 end
end
local batch = { x = orrery.tensor(x, "f32") }
for step = 1, args.steps do orrery.log("step %d loss %.17g", step, run:step(batch):mean()) end
local used = run:counters()
if used.predicted_bytes_sent ~= used.bytes_sent then
  error(("rank %d sent %d bytes, predicted were %d"):format(orrery.world.rank, used.bytes_sent, used.predicted_bytes_sent))
end
orrery.log("eval %.17g", run:eval(batch):mean())
if args.save ~= "" then run:save(args.save) end
orrery.log("digest %s", orrery.digest(model))
