-- SPDX-License-Identifier: Apache-2.0
--
-- A Vision Transformer (Dosovitskiy et al., arXiv:2010.11929): an image is cut into patches, each of which becomes a
-- token, and a class token in front of them gathers what the whole shows. Classifies rings, discs, squares, crosses and
-- triangles that the script draws, of any size and place, in noise. Prints how many of 500 images that it has not seen
-- get their right name: 481 after the default steps.
local orrery = require "orrery"
local vit = require "models.vit"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  steps = 1000, batch = 32, size = 16, patch = 4, dim = 48, heads = 4, layers = 3, lr = 2e-3, images = 4000, test = 500,
  noise = 0.3, microbatches = 2, every = 200, seed = 1,
}
orrery.seed(args.seed)

-- Whether a shape of radius r covers the place (x, y), counted from its centre.
local shapes = {
  { "ring", function(x, y, r) return math.abs(math.sqrt(x * x + y * y) - r) < 0.6 end },
  { "disc", function(x, y, r) return x * x + y * y < r * r end },
  { "square", function(x, y, r) return math.max(math.abs(x), math.abs(y)) < r end },
  { "cross", function(x, y, r) return math.abs(math.abs(x) - math.abs(y)) < 0.6 and math.abs(x) < r end },
  { "triangle", function(x, y, r) return math.abs(x) < (y + r) / 2 and y < r end },
}

local function draw(covers)
  local r = 2.5 + 2.5 * math.random()
  local centre = function() return r + (args.size - 2 * r) * math.random() end
  local left, top, image = centre(), centre(), {}
  for row = 1, args.size do
    image[row] = {}
    for column = 1, args.size do
      local inside = covers(column - 0.5 - left, row - 0.5 - top, r)
      image[row][column] = (inside and 1 or 0) + args.noise * (math.random() * 2 - 1)
    end
  end
  return { image }
end

local function dataset(count)
  local x, y = {}, {}
  for i = 1, count do
    y[i] = (i - 1) % #shapes
    x[i] = draw(shapes[y[i] + 1][2])
  end
  return orrery.data.arrays { x = orrery.tensor(x, "f32"), y = y }
end

local model = vit.model {
  channels = 1, size = args.size, patch = args.patch, dim = args.dim, hidden = 2 * args.dim, heads = args.heads,
  layers = args.layers, classes = #shapes,
}
local run = orrery.compile(function(batch)
  local logits = model(batch.x)
  return nn.cross_entropy(logits, batch.y), { accuracy = orrery.metrics.accuracy(logits, batch.y) }
end, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {}, clip = 1,
  optimizer = optim.adamw {
    lr = optim.cosine { peak = args.lr, warmup = args.steps // 10, steps = args.steps }, decay = 0.05,
  },
})
local train, test = dataset(args.images), dataset(args.test)
local done = run:fit { data = train, size = args.batch, steps = args.steps, eval = test, every = args.every }
local last = done.history[#done.history].results
orrery.log("%.0f of %d images not seen before get their right name", last.accuracy * args.test, args.test)
orrery.log("digest %s", orrery.digest(model))
