-- SPDX-License-Identifier: Apache-2.0
--
-- DCGAN (Radford et al., arXiv:1511.06434): a generator makes images by transposed convolutions, a critic tells them
-- from drawn ones by strided convolutions, both with batch normalisation; each is trained by a run of its own. The
-- images are discs. Records some that are made up on the way, prints some, and how many of 200 are discs but for two
-- pixels: 164 after the default steps, with middles in 12 of 16 parts of the image (of drawn ones 199, in 15 parts).
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  steps = 3000, batch = 32, images = 2000, noise = 16, width = 16, lr = 5e-4, samples = 200, show = 3, microbatches = 2,
  every = 500, seed = 1,
}
orrery.seed(args.seed)

local size = 12
-- A disc as a row of pixels from -1 to 1.
local function disc(x, y, r)
  local image = {}
  for i = 0, size * size - 1 do
    local far = ((i % size + 0.5 - x) ^ 2 + (i // size + 0.5 - y) ^ 2) ^ 0.5
    image[i + 1] = 2 * math.max(0, math.min(1, r - far + 0.5)) - 1
  end
  return image
end
local images = {}
for i = 1, args.images do
  local r = 1.5 + 2.5 * math.random()
  images[i] = disc(r + (size - 2 * r) * math.random(), r + (size - 2 * r) * math.random(), r)
end
local data = orrery.data.arrays { x = orrery.tensor(images, "f32") }

local function leaky(x) return nn.leaky_relu(x, { slope = 0.2 }) end
local init, w = nn.init.normal(0.02), args.width
local function conv(inputs, outputs, window, stride, padding)
  return nn.conv2d(inputs, outputs, window, { stride = stride, padding = padding, bias = false, init = init })
end
local function transposed(inputs, outputs, window, stride, padding)
  return nn.conv_transpose2d(inputs, outputs, window, { stride = stride, padding = padding, bias = false, init = init })
end
local generator = nn.sequential {
  function(z) return z:reshape(-1, args.noise, 1, 1) end,
  transposed(args.noise, 4 * w, 3, 1, 0), nn.batchnorm(4 * w), nn.relu, -- 3 x 3
  transposed(4 * w, 2 * w, 4, 2, 1), nn.batchnorm(2 * w), nn.relu, -- 6 x 6
  transposed(2 * w, 1, 4, 2, 1), nn.tanh, nn.flatten,
}
local critic = nn.sequential {
  function(x) return x:reshape(-1, 1, size, size) end,
  conv(1, w, 4, 2, 1), leaky,
  conv(w, 2 * w, 4, 2, 1), nn.batchnorm(2 * w), leaky,
  conv(2 * w, 1, 3, 1, 0), nn.flatten,
}
orrery.parameters { generator = generator, critic = critic } -- gives them names that differ

local function compile(name, loss, model)
  return orrery.compile(loss, {
    name = name, params = model, microbatches = args.microbatches, strategy = strategy.data {},
    optimizer = optim.adam { lr = args.lr, b1 = 0.5 },
  })
end
local function made(batch) return generator(orrery.normal(batch.x:slice(2, 1, args.noise))) end
local function says(x, answer)
  local logits = critic(x)
  return nn.bce_with_logits(logits, orrery.full(logits.shape, answer)), logits:gt(0):cast("f32"):mean()
end
local critic_run = compile("critic", function(batch)
  local real, believed = says(batch.x, 1)
  local fake, fooled = says(made(batch):stop_gradient(), 0)
  return real + fake, { believed = believed, fooled = fooled }
end, critic)
local generator_run = compile("generator", function(batch) return (says(made(batch), 1)) end, generator)
local make = orrery.func(function() return generator(orrery.normal { args.samples, args.noise }) end)
local show = orrery.func(function(x) return (x:slice(1, 1, 16):reshape(16, 1, size, size) + 1) / 2 end)
for step, batch in data:batches { size = args.batch, steps = args.steps } do
  local told, fooled = critic_run:step(batch), generator_run:step(batch)
  if step % args.every == 0 or step == args.steps then
    orrery.log("step %d critic's loss %.3f generator's %.3f; taken for drawn: %.2f of drawn, %.2f of made", step, told:mean(),
      fooled:mean(), told:get "believed", told:get "fooled")
    orrery.record("made", show(make()))
  end
end

-- In how many pixels an image differs from the disc with as many bright ones around the same middle, which is x, y.
local function compare(image)
  local n, x, y, differ = 0, 0, 0, 0
  for i, value in ipairs(image) do
    if value > 0 then n, x, y = n + 1, x + (i - 1) % size + 0.5, y + (i - 1) // size + 0.5 end
  end
  if n == 0 then return size * size end
  for i, value in ipairs(disc(x / n, y / n, (n / math.pi) ^ 0.5)) do
    if (value > 0) ~= (image[i] > 0) then differ = differ + 1 end
  end
  return differ, x / n, y / n
end
local made_up = make():tolist()
local right, parts, hit = 0, {}, 0
for i, image in ipairs(made_up) do
  local differ, x, y = compare(image)
  if differ <= 2 then
    local part = x // 3 + 4 * (y // 3)
    right, hit, parts[part] = right + 1, hit + (parts[part] and 0 or 1), true
  end
  if i <= args.show then
    local marks = {}
    for at, value in ipairs(image) do marks[at] = (value > 0 and "#" or ".") .. (at % size == 0 and "\n" or "") end
    orrery.log("%s", table.concat(marks))
  end
end
orrery.log("%d of %d are discs, with middles in %d of 16 parts of the image", right, args.samples, hit)
orrery.log("digest %s", orrery.digest { generator = generator, critic = critic })
