-- SPDX-License-Identifier: Apache-2.0
--
-- A few steps of ResNet-18 in bf16 on images of 32 by 32; kernels.py reads its --profile.
local orrery = require "orrery"
local models = require "bench.peer.larger"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { steps = 6, batch = 256, width = 64, blocks = 2, numerics = { "exact", "fast" } }
orrery.seed(1)

local model = models.resnet { width = args.width, blocks = args.blocks, classes = 10 }
local run = orrery.compile(function(batch) return nn.cross_entropy(model(batch.x), batch.y) end, {
  params = model, strategy = { strategy.data {}, strategy.precision { compute = "bf16" } }, numerics = args.numerics,
  optimizer = optim.adamw { lr = 1e-3 },
})

local images, labels = {}, {}
for i = 1, args.batch do
  images[i], labels[i] = {}, i % 10
  for c = 1, 3 do
    images[i][c] = {}
    for row = 1, 32 do
      images[i][c][row] = {}
      for column = 1, 32 do images[i][c][row][column] = math.sin(i * 0.7 + c * 2 + row * column * (i % 3 + 1)) end
    end
  end
end
local batch = { x = orrery.tensor(images, "f32"), y = orrery.tensor(labels, "i64") }
for _ = 1, args.steps do orrery.log("loss %.5f", run:step(batch):mean()) end
