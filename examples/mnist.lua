-- SPDX-License-Identifier: Apache-2.0
--
-- Classifies images in MNIST's idx files (train-images-idx3-ubyte and so on, also .gz), cropped at random. With `load`
-- it goes on from a checkpoint, where the data goes on too.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  images = { "train-images-idx3-ubyte", help = "MNIST's file of images" },
  labels = { "train-labels-idx1-ubyte", help = "its labels" },
  pad = { 2, help = "pixels around an image, for the random crop" },
  save = { "", help = "folder of the checkpoint written at the end" },
  load = { "", help = "folder of a checkpoint to continue from" },
  batch = 64, steps = 1000, hidden = 256, lr = 1e-3, microbatches = 16, seed = 1,
}
orrery.seed(args.seed)

local all = orrery.data.idx(args.images, args.labels)
local channels, height, width = table.unpack(all:batch(1, { size = 1 }).x.shape, 2)
local edge = math.min(height, width)
local train, inputs = all:augment { crop = edge, pad = args.pad }, channels * edge * edge

local model = nn.sequential { nn.linear(inputs, args.hidden), nn.relu, nn.linear(args.hidden, 10) }
local function loss(batch)
  local logits = model(batch.x:reshape { -1, inputs })
  return nn.cross_entropy(logits, batch.y), { accuracy = orrery.metrics.accuracy(logits, batch.y) }
end
local run = orrery.compile(loss, {
  params = model, optimizer = optim.adamw { lr = args.lr }, microbatches = args.microbatches, strategy = strategy.data {},
})
if args.load ~= "" then run:load(args.load) end

run:fit { data = train, size = args.batch, steps = args.steps, log = 100 }
if args.save ~= "" then run:save(args.save) end
orrery.log("digest %s", orrery.digest(model))
