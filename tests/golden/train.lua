-- SPDX-License-Identifier: Apache-2.0
--
-- Trains a model from the golden weights on the golden batches; a line for each step: loss, gradient norm. One more
-- line for the evaluation of the first batch of images, twice the loss.
local orrery = require "orrery"
local models = require "models"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { dir = "tests/golden", model = { "mlp", "gpt", "cnn", "depthwise" }, microbatches = 1 }

local model, optimizer
local images = args.model == "cnn" or args.model == "depthwise"
if args.model ~= "gpt" then
  model = images and models[args.model]() or models.mlp { 16, 32, 32, 4 }
  optimizer = optim.momentum {
    lr = optim.linear { peak = 0.1, warmup = 3, steps = 20, floor = 0.01 },
    momentum = 0.9, nesterov = true, decay = 1e-2,
  }
else
  model = models.gpt { vocab = 65, positions = 16, dim = 32, heads = 2, layers = 2 }
  optimizer = optim.adamw {
    lr = optim.cosine { peak = 1e-2, warmup = 4, steps = 20, floor = 1e-3 },
    decay = 0.1, b2 = 0.99, groups = { { match = models.undecayed, decay = 0 } },
  }
end
local stem = ("%s/%s"):format(args.dir, args.model)
-- The files have parameters alone: averages of batch normalisation begin as they do.
for _, path in ipairs((model:load_weights(stem .. ".safetensors", { strict = false }))) do
  assert(path:find "running_", path)
end
if images then stem = args.dir .. "/images" end

local run = orrery.compile(function(batch) return nn.cross_entropy(model(batch.x), batch.y) end, {
  params = model, optimizer = optimizer, microbatches = args.microbatches, clip = 1.0,
})
local data = orrery.data.arrays { x = stem .. ".x.npy", y = stem .. ".y.npy" }
for _, batch in data:batches { size = 6, steps = 20, shuffle = false } do
  local result = run:step(batch)
  orrery.log("%.9g %.9g", result:mean(), result:get "grad_norm")
end
if images then
  for _, batch in data:batches { size = 6, steps = 1, shuffle = false } do
    local loss = run:eval(batch):mean()
    orrery.log("%.9g %.9g", loss, loss)
  end
end
