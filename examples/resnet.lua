-- SPDX-License-Identifier: Apache-2.0
--
-- ResNet-18 for small images (He et al., 2015, with the stem for CIFAR), data parallel. Trains on the binary files of
-- CIFAR-10 in DIR (data_batch_1.bin ..., evaluated on test_batch.bin), cropped and mirrored at random, or on gratings
-- that the script draws itself. With sync=1 batchnorm takes the statistics of the whole batch instead of each
-- microbatch's. Any number of ranks gives the same digest.
--
--   orrery run -n 2 examples/resnet.lua
--   orrery run -n 2 examples/resnet.lua data=DIR steps=2000 sync=1
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local images = require "models.images"
local args = orrery.args {
  data = "", steps = 50, batch = 32, width = 64, blocks = 2, size = 32, images = 256, classes = 10, lr = 0.05,
  microbatches = 2, sync = 0, every = 10, seed = 1,
}
orrery.seed(args.seed)

local function conv(inputs, outputs, size, stride)
  return nn.conv2d(inputs, outputs, size, { stride = stride, padding = size // 2, bias = false, init = nn.init.kaiming })
end
local function norm(channels) return nn.batchnorm(channels, { sync = args.sync == 1 }) end

local Block = nn.module("Block", function(m, inputs, outputs, stride)
  m.conv1, m.norm1 = conv(inputs, outputs, 3, stride), norm(outputs)
  m.conv2, m.norm2 = conv(outputs, outputs, 3, 1), norm(outputs)
  local shortcut
  if stride ~= 1 or inputs ~= outputs then
    shortcut = nn.sequential { conv(inputs, outputs, 1, stride), norm(outputs) }
    m.shortcut = shortcut
  end
  return function(x)
    local y = m.norm2(m.conv2(nn.relu(m.norm1(m.conv1(x)))))
    return nn.relu(y + (shortcut and shortcut(x) or x))
  end
end)

local function resnet()
  local parts, inputs = { conv(3, args.width, 3, 1), norm(args.width), nn.relu }, args.width
  for stage = 1, 4 do
    local outputs = args.width << (stage - 1)
    for i = 1, args.blocks do
      parts[#parts + 1] = Block(inputs, outputs, stage > 1 and i == 1 and 2 or 1)
      inputs = outputs
    end
  end
  for _, part in ipairs { nn.adaptive_avg_pool2d(1), nn.flatten, nn.linear(inputs, args.classes) } do
    parts[#parts + 1] = part
  end
  return nn.sequential(parts)
end

local data, held_out = images.read(args.data, args.images, args.size, args.classes)
local model = resnet()

local function loss(batch)
  local logits = model(batch.x)
  return nn.cross_entropy(logits, batch.y), { accuracy = orrery.metrics.accuracy(logits, batch.y) }
end

local run = orrery.compile(loss, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {},
  optimizer = optim.momentum {
    lr = optim.cosine { peak = args.lr, warmup = math.max(1, args.steps // 10), steps = args.steps },
    momentum = 0.9, nesterov = true, decay = 5e-4,
  },
})
images.train(run, data, held_out, args)
orrery.log("digest %s", orrery.digest(model))
