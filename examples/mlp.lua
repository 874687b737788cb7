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
  local right = logits:argmax():eq(batch.y):cast("f32"):mean()
  return nn.cross_entropy(logits, batch.y), { accuracy = right }
end

local train, test = spirals(200), spirals(100)
local run = orrery.compile(loss, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {},
  optimizer = optim.adamw { lr = optim.cosine { peak = args.lr, warmup = 20, steps = args.steps } },
})

local start = orrery.time()
for step, batch in train:batches { size = args.batch, steps = args.steps } do
  local result = run:step(batch)
  if step % 100 == 0 then
    local each = (orrery.time() - start) * 1000 / step
    orrery.log("step %d loss %.4f accuracy %.3f  %.3f ms", step, result:mean(),
      result:get "accuracy", each)
  end
end

local result = run:eval(test:batch(1, { size = test.samples, shuffle = false }))
orrery.log("test: loss %.4f accuracy %.3f", result:mean(), result:get "accuracy")
orrery.log("digest %s", orrery.digest(model))
