-- SPDX-License-Identifier: Apache-2.0
--
-- Trains on files of samples. kind: images, mirrored at random, tokens or lines of JSON; files: where tests/data/files are,
-- or the file of these. After its steps it saves, with `load` it goes on.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { kind = "images", files = "", steps = 12, load = "", save = "" }

local kinds = {}

function kinds.images()
  local data = orrery.data.images(args.files .. "/images", { size = 6 }):augment { flip = true }
  local net = nn.sequential { nn.linear(108, 16), nn.relu, nn.linear(16, 2) }
  return data, net, function(b) return nn.cross_entropy(net(b.x:reshape { -1, 108 }), b.y) end
end

function kinds.tokens()
  local net = nn.sequential { nn.embedding(65536, 8), nn.linear(8, 4) }
  return orrery.data.tokens(args.files, { length = 32 }), net, function(b)
    return nn.cross_entropy(net(b.x), (b.y:cast "f32" * 0):cast "i32")
  end
end

function kinds.lines()
  local all = orrery.data.jsonl(args.files, { x = "x", y = { "y" }, kind = "kind" }, { dtypes = { kind = "class" } })
  local some = all:filter(function(sample) return sample.kind:item() == 1 end)
  local net = nn.linear(3, 1)
  local parts = orrery.data.concat { some, all:take { 40, 2, 1 } }
  local noisy = parts:map(function(sample, random)
    local x = sample.x:tolist()
    return { x = { x[1] + random(), x[2], x[3] }, y = sample.y }
  end)
  return noisy, net, function(b) return nn.mse(net(b.x), b.y) end
end

local data, net, loss = kinds[args.kind]()
local run = orrery.compile(loss, {
  params = net, optimizer = optim.adam { lr = 0.01 }, microbatches = args.kind == "lines" and 4 or 2, strategy = orrery.strategy.data {},
})
if args.load ~= "" then run:load(args.load) end
for step, batch in data:batches { size = 4, steps = args.steps, from = run.steps + 1 } do
  orrery.log("step %d loss %.6f", step, run:step(batch):mean())
end
if args.save ~= "" then run:save(args.save) end
for line in io.lines "/proc/self/status" do
  local anonymous = line:match "RssAnon:%s+(%d+)"
  if anonymous then orrery.log("anonymous %d", anonymous) end
end
orrery.log("digest %s", orrery.digest(net))
