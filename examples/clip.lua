-- SPDX-License-Identifier: Apache-2.0
--
-- CLIP (Radford et al., arXiv:2103.00020): an encoder of images and one of captions learn which belong together. Each
-- caption finds its image among all of the batch, and each image its caption, on whatever ranks those are, at a
-- temperature that is learned. The script draws shapes and says what they are. At last 64 captions that training has
-- not had look for their images among each other: 60 find theirs after the default steps.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  steps = 800, batch = 48, size = 12, dim = 32, layers = 2, lr = 2e-3, copies = 6, held_out = 64, microbatches = 2,
  every = 100, seed = 1,
}
orrery.seed(args.seed)

-- A caption has a word of each list. Shapes cover a place that is x and y away from their middle, at radius r.
local shapes = {
  disc = function(x, y, r) return x * x + y * y < r * r end,
  ring = function(x, y, r) return math.abs((x * x + y * y) ^ 0.5 - r) < 0.6 end,
  square = function(x, y, r) return math.max(x, y) < r end,
  cross = function(x, y, r) return math.min(x, y) < 0.6 and math.max(x, y) < r end,
}
local colours = {
  red = { 1, 0, 0 }, green = { 0, 1, 0 }, blue = { 0, 0, 1 }, yellow = { 1, 1, 0 }, violet = { 1, 0, 1 }, white = { 1, 1, 1 },
}
local places = { top = 1 / 6, centre = 1 / 2, bottom = 5 / 6, left = 1 / 6, middle = 1 / 2, right = 5 / 6 }
local lists = {
  { "small", "large" }, { "red", "green", "blue", "yellow", "violet", "white" }, { "disc", "ring", "square", "cross" },
  { "top", "centre", "bottom" }, { "left", "middle", "right" },
}
local ids_of, vocab, captions = {}, 0, 1
for _, list in ipairs(lists) do
  for _, word in ipairs(list) do ids_of[word], vocab = vocab, vocab + 1 end
  captions = captions * #list
end

-- The words of the n-th caption, counted from 0.
local function caption(n)
  local words = {}
  for i, list in ipairs(lists) do words[i], n = list[n % #list + 1], n // #list end
  return words
end

local function draw(n)
  local size, colour, shape, high, wide = table.unpack(caption(n))
  local covers, r, image = shapes[shape], size == "small" and 1.2 or 2.4, {}
  local top, left = places[high] * args.size + math.random() - 0.5, places[wide] * args.size + math.random() - 0.5
  for channel, light in ipairs(colours[colour]) do
    image[channel] = {}
    for row = 1, args.size do
      image[channel][row] = {}
      for column = 1, args.size do
        local inside = covers(math.abs(column - 0.5 - left), math.abs(row - 0.5 - top), r)
        image[channel][row][column] = (inside and light or 0) + 0.2 * math.random()
      end
    end
  end
  return image
end

local function dataset(numbers, copies)
  local x, ids = {}, {}
  for i = 1, #numbers * copies do
    local n = numbers[(i - 1) % #numbers + 1]
    x[i], ids[i] = draw(n), {}
    for place, word in ipairs(caption(n)) do ids[i][place] = ids_of[word] end
  end
  return orrery.data.arrays { x = orrery.tensor(x, "f32"), ids = orrery.tensor(ids, "i32") }
end

local function conv(inputs, outputs, stride) return nn.conv2d(inputs, outputs, 3, { stride = stride, padding = 1 }) end
local CLIP = nn.module("CLIP", function(m)
  local side = args.size // 4
  m.image = nn.sequential {
    conv(3, 16, 1), nn.relu, conv(16, 32, 2), nn.relu, conv(32, 32, 2), nn.relu, nn.flatten, nn.linear(32 * side * side, args.dim),
  }
  m.words, m.places = nn.embedding(vocab, args.dim), nn.embedding(#lists, args.dim)
  m.text = nn.sequential(args.layers, function()
    return nn.transformer_encoder_layer(args.dim, 4, { hidden = 4 * args.dim, act = nn.gelu, dropout = 0, norm_first = true })
  end)
  m.norm, m.project = nn.layernorm(args.dim), nn.linear(args.dim, args.dim, { bias = false })
  m.warmth = nn.parameter({}, { init = nn.init.constant(math.log(1 / 0.07)) }) -- logarithm of 1 / temperature
  local function unit(z) return z * (z:sumsq(-1, { keep = true }) + 1e-12):rsqrt() end
  return function(images, ids)
    local x = m.text(m.words(ids) + m.places(orrery.iota(#lists)))
    return unit(m.image(images)), unit(m.project(m.norm(x:mean(2)))), m.warmth:exp():minimum(100)
  end
end)
local model = CLIP()

-- The loss of finding each row of `own` in the whole batch's `others`, and how often it is found.
local function found(own, others, scale)
  local logits = own:matmul(others:all_gather("batch"), { transpose_b = true }) * scale
  local index = orrery.sample_index()
  return nn.cross_entropy(logits, index), logits:argmax():eq(index):cast("f32"):mean()
end
local run = orrery.compile(function(batch)
  local image, text, scale = model(batch.x, batch.ids)
  local by_image, right_captions = found(image, text, scale)
  local by_caption, right_images = found(text, image, scale)
  return (by_image + by_caption) / 2, { captions = right_captions, images = right_images, scale = scale }
end, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {}, clip = 1,
  optimizer = optim.adam { lr = optim.cosine { peak = args.lr, warmup = args.steps // 10, steps = args.steps } },
})
local numbers = {}
for n = 1, captions do table.insert(numbers, math.random(n), n - 1) end
local test = dataset({ table.unpack(numbers, 1, args.held_out) }, 1)
local train = dataset({ table.unpack(numbers, args.held_out + 1) }, args.copies)
run:fit { data = train, size = args.batch, steps = args.steps, log = args.every }
local seen = run:eval(test, { size = args.held_out })
orrery.log("of %d new captions %.0f find their image, and %.0f are found by it", args.held_out,
  seen:get "images" * args.held_out, seen:get "captions" * args.held_out)
orrery.log("digest %s", orrery.digest(model))
