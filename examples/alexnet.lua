-- SPDX-License-Identifier: Apache-2.0
--
-- AlexNet (Krizhevsky, Sutskever, Hinton, NIPS 2012) as it was trained: two columns, each on a rank of its own, that
-- meet in the third convolution and in the dense layers. For images of 32 by 32: the binary files of CIFAR-10 in DIR, or
-- gratings that the script draws itself, of which it then recognises all 256 new ones (10 classes). One rank and two
-- give the same digest.
--
--   orrery run -n 2 examples/alexnet.lua
--   orrery run -n 2 examples/alexnet.lua data=DIR width=48 dense=1024 batch=128 steps=5000
local orrery = require "orrery"
local nn, optim, strategy, world = orrery.nn, orrery.optim, orrery.strategy, orrery.world
local images = require "models.images"
local args = orrery.args {
  data = "", steps = 200, batch = 32, microbatches = 2, width = 12, dense = 64, size = 32, images = 256, classes = 10,
  dropout = 0.5, lr = 0.005, every = 10, seed = 1,
}
orrery.seed(args.seed)

-- Each value over (2 + 1e-4 times the sum of squares of the channels within two of it) to the power of 0.75.
local function response_norm(x)
  local channels = x.shape[2]
  local squares, sum = (x * x):pad(2, channels + 4, { before = 2 }), nil
  for first = 1, 5 do
    local neighbours = squares:slice(2, first, first + channels - 1)
    sum = sum and sum + neighbours or neighbours
  end
  return x * ((sum * 1e-4 + 2):log() * -0.75):exp()
end

local function conv(inputs, outputs, size)
  return nn.conv2d(inputs, outputs, size, { padding = size // 2, init = nn.init.kaiming })
end
local function dense(inputs, outputs) return nn.linear(inputs, outputs, { init = nn.init.kaiming }) end
local function pool() return nn.max_pool2d(3, { stride = 2, padding = 1 }) end

-- Half of the neurons; `w` is 48 in the paper, `d` 2048. Convolutions 2, 4 and 5 see their own column alone.
local Column = nn.module("Column", function(m, w, d)
  m.conv12 = nn.sequential {
    conv(3, w, 5), nn.relu, response_norm, pool(), conv(w, 8 * w // 3, 5), nn.relu, response_norm, pool(),
  }
  m.conv345 = nn.sequential {
    conv(16 * w // 3, 4 * w, 3), nn.relu, conv(4 * w, 4 * w, 3), nn.relu, conv(4 * w, 8 * w // 3, 3), nn.relu, pool(),
    nn.flatten,
  }
  local side = (args.size + 7) // 8
  m.dense6 = nn.sequential { dense(16 * w // 3 * side * side, d), nn.relu, nn.dropout(args.dropout) }
  m.dense7 = nn.sequential { dense(2 * d, d), nn.relu, nn.dropout(args.dropout) }
  return function() orrery.fail "a column is called part by part" end
end)

local AlexNet = nn.module("AlexNet", function(m, w, d)
  m.left, m.right, m.head = Column(w, d), Column(w, d), nn.linear(2 * d, args.classes)
  local function both(part, x)
    return orrery.concat({ m.left[part](x), m.right[part](x) }, 2)
  end
  return function(x)
    for _, part in ipairs { "conv12", "conv345", "dense6", "dense7" } do x = both(part, x) end
    return m.head(x)
  end
end)

local parts, ranks = {}, {}
for _, part in ipairs { "conv12", "conv345", "dense6", "dense7" } do
  for rank, column in ipairs { "left", "right" } do
    parts[#parts + 1], ranks[#ranks + 1] = column .. "." .. part, rank - 1
  end
end
parts[#parts + 1], ranks[#ranks + 1] = "head", 0

local train, held_out = images.read(args.data, args.images, args.size, args.classes)
local model = AlexNet(args.width, args.dense)
local run = orrery.compile(function(batch)
  local logits = model(batch.x)
  return nn.cross_entropy(logits, batch.y), { accuracy = orrery.metrics.accuracy(logits, batch.y) }
end, {
  params = model, microbatches = args.microbatches,
  strategy = world.size > 1 and strategy.place { modules = parts, ranks = ranks } or strategy.data {},
  optimizer = optim.momentum {
    lr = optim.cosine { peak = args.lr, warmup = math.max(1, args.steps // 10), steps = args.steps },
    momentum = 0.9, decay = 5e-4,
  },
})
images.train(run, train, held_out, args)
orrery.log("digest %s", orrery.digest(model))
