-- SPDX-License-Identifier: Apache-2.0
--
-- Trains on files of samples. kind: idx (images, changed at random), tokens or images; files: where tests/data/files
-- are, or the file of tokens. At `stop` it saves and ends, with `load` it goes on.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { kind = "idx", files = "", steps = 12, stop = 0, load = "", save = "" }

local function images_of(data, inputs, classes)
  local net = nn.sequential { nn.linear(inputs, 16), nn.relu, nn.linear(16, classes) }
  return data, net, function(b) return nn.cross_entropy(net(b.x:reshape { -1, inputs }), b.y) end
end

local kinds = {}

function kinds.idx()
  local data = orrery.data.idx(args.files .. "/images.idx", args.files .. "/labels.idx")
  return images_of(data:augment { crop = 4, pad = 1, flip = true, mean = { 0.5 }, std = { 0.25 } }, 16, 10)
end

function kinds.images()
  return images_of(orrery.data.images(args.files .. "/images", { size = 6 }), 108, 2)
end

function kinds.tokens()
  local net = nn.sequential { nn.embedding(65536, 8), nn.linear(8, 4) }
  return orrery.data.tokens(args.files, { length = 32 }), net, function(b)
    return nn.cross_entropy(net(b.x), (b.y:cast "f32" * 0):cast "i32")
  end
end

local data, net, loss = kinds[args.kind]()
local run = orrery.compile(loss, {
  params = net, optimizer = optim.adam { lr = 0.01 }, microbatches = 2, strategy = orrery.strategy.data {},
})
if args.load ~= "" then run:load(args.load) end
for step, batch in data:batches { size = 4, steps = args.steps, from = run.steps + 1 } do
  local value = run:step(batch):mean()
  orrery.log("step %d loss %.6f", step, value)
  if step == args.stop then
    run:save(args.save)
    break
  end
end
for line in io.lines "/proc/self/status" do
  local anonymous = line:match "RssAnon:%s+(%d+)"
  if anonymous then orrery.log("anonymous %d", anonymous) end
end
orrery.log("digest %s", orrery.digest(net))
