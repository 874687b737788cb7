-- SPDX-License-Identifier: Apache-2.0
--
-- A variational autoencoder (Kingma and Welling, arXiv:1312.6114) of bars: images in which one row or one column is
-- bright, drawn by the script. Prints the bound, images that it makes up from N(0, 1), and how many of 200 such are
-- bars: 180 of 200 after the default steps.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  steps = 8000, batch = 48, size = 6, hidden = 96, latent = 2, lr = 3e-3, microbatches = 2, every = 1000, show = 4, seed = 1,
}
orrery.seed(args.seed)
local pixels = args.size * args.size

local function bars()
  local images = {}
  for line = 1, args.size do
    local row, column = {}, {}
    for i = 0, pixels - 1 do
      row[i + 1] = i // args.size + 1 == line and 1.0 or 0.0
      column[i + 1] = i % args.size + 1 == line and 1.0 or 0.0
    end
    images[#images + 1], images[#images + 2] = row, column
  end
  return orrery.tensor(images, "f32")
end

local VAE = nn.module("VAE", function(m)
  m.encoder = nn.sequential { nn.linear(pixels, args.hidden), nn.relu }
  m.statistics = nn.linear(args.hidden, { args.latent, args.latent })
  m.decoder = nn.sequential {
    nn.linear(args.latent, args.hidden), nn.relu, nn.linear(args.hidden, args.hidden), nn.relu, nn.linear(args.hidden, pixels),
  }
  return function(x)
    local mean, log_variance = m.statistics(m.encoder(x))
    local code = orrery.training() and mean + orrery.normal(mean) * (log_variance * 0.5):exp() or mean
    return m.decoder(code), mean, log_variance
  end
end)
local model = VAE()

-- log(1 + exp(x)), which no x makes infinite.
local function softplus(x) return x:relu() + ((x:abs() * -1):exp() + 1):log() end

-- The negative bound, in nats for each image: cross-entropy of the pixels and the divergence of the code from N(0, 1).
local function loss(batch)
  local logits, mean, log_variance = model(batch.x)
  local pixel = (softplus(logits) - logits * batch.x):sum(-1)
  local divergence = (mean * mean + log_variance:exp() - log_variance - 1):sum(-1) * 0.5
  return (pixel + divergence):mean(), { pixel = pixel:mean(), divergence = divergence:mean() }
end

local run = orrery.compile(loss, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {}, clip = 10.0,
  optimizer = optim.adam { lr = optim.cosine { peak = args.lr, warmup = 20, steps = args.steps } },
})
local data = orrery.data.arrays { x = bars() }
run:fit { data = data, size = args.batch, steps = args.steps, log = args.every }

-- Whether exactly the pixels of one row or column are bright.
local function is_bar(image)
  local rows, columns, bright = {}, {}, 0
  for i, value in ipairs(image) do
    if value > 0.5 then
      rows[(i - 1) // args.size], columns[(i - 1) % args.size], bright = true, true, bright + 1
    end
  end
  return bright == args.size and (next(rows, next(rows)) == nil or next(columns, next(columns)) == nil)
end

local count = 200
local made = orrery.func(function()
  return model.decoder(orrery.normal { count, args.latent }):sigmoid()
end)():tolist()
for i = 1, args.show do
  for row = 1, args.size do
    local line = {}
    for column = 1, args.size do line[column] = made[i][(row - 1) * args.size + column] > 0.5 and "#" or "." end
    orrery.log("%s", table.concat(line))
  end
  orrery.log ""
end
local right = 0
for _, image in ipairs(made) do right = right + (is_bar(image) and 1 or 0) end
orrery.log("%d of %d are bars", right, count)
orrery.log("digest %s", orrery.digest(model))
