-- SPDX-License-Identifier: Apache-2.0
--
-- Classifies the points of three spirals that the script draws itself.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  steps = 600, batch = 96, hidden = 64, lr = 0.01, microbatches = 12, seed = 1,
}
orrery.seed(args.seed)

local function spirals(per_class)
  local x, y = {}, {}
  for class = 0, 2 do
    for i = 1, per_class do
      local t = i / per_class
      local angle = 4 * t + class * 2 * math.pi / 3 + 0.2 * (math.random() - 0.5)
      x[#x + 1], y[#y + 1] = { t * math.cos(angle), t * math.sin(angle) }, class
    end
  end
  return orrery.data.arrays { x = orrery.tensor(x, "f32"), y = y }
end

local model = nn.sequential {
  nn.linear(2, args.hidden), nn.relu,
  nn.linear(args.hidden, args.hidden), nn.relu,
  nn.linear(args.hidden, 3),
}
orrery.log("%s", tostring(model))

-- The loss, and with it the share of right answers.
local function loss(batch)
  local logits = model(batch.x)
  return nn.cross_entropy(logits, batch.y), { accuracy = orrery.metrics.accuracy(logits, batch.y) }
end

local train, test = spirals(200), spirals(100)
local run = orrery.compile(loss, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {},
  optimizer = optim.adamw { lr = optim.cosine { peak = args.lr, warmup = 20, steps = args.steps } },
})

run:fit { data = train, size = args.batch, steps = args.steps, eval = test, every = 100 }
orrery.log("digest %s", orrery.digest(model))
