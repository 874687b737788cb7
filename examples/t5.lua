-- SPDX-License-Identifier: Apache-2.0
--
-- T5, an encoder and a decoder, learns to turn sequences round: places are known only by how far they are apart, and
-- the decoder looks at the encoder's places that are no padding.
--
--   orrery run -n 2 examples/t5.lua
local orrery = require "orrery"
local t5 = require "models.t5"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  steps = 600, batch = 32, ctx = 8, letters = 10, microbatches = 16, seed = 1, samples = 4096,
  dim = 64, heads = 4, layers = 1, buckets = 16, distance = 16, lr = 3e-3,
}
orrery.seed(args.seed)
local padding, stop, first, ignored = 0, 1, 2, -100 -- the letters are the ids from `first` on

-- Rows of ids to read, of what was written before each place, and of what is to be written there.
local function make(samples)
  local x, written, y = {}, {}, {}
  for i = 1, samples do
    local length = math.random(2, args.ctx - 1)
    x[i], written[i], y[i] = {}, {}, {}
    for t = 1, args.ctx do
      x[i][t] = t <= length and math.random(first, first + args.letters - 1) or t == length + 1 and stop or padding
    end
    for t = 1, args.ctx do
      written[i][t] = t > 1 and t <= length + 1 and x[i][length + 2 - t] or padding
      y[i][t] = t <= length and x[i][length + 1 - t] or t == length + 1 and stop or ignored
    end
    written[i][1] = padding -- what the decoder begins with
  end
  return x, written, y
end

local function tensor(rows) return orrery.tensor(rows, "i32") end
local x, written, y = make(args.samples)
local data = orrery.data.arrays { x = tensor(x), written = tensor(written), y = tensor(y) }
local model = t5.model {
  vocab = first + args.letters, padding = padding, dim = args.dim, heads = args.heads, layers = args.layers,
  buckets = args.buckets, distance = args.distance,
}
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x, b.written), b.y, { ignore = ignored }) end, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {}, clip = 1,
  optimizer = optim.adamw { lr = optim.linear { peak = args.lr, warmup = 20, steps = args.steps } },
})
run:fit { data = data, size = args.batch, steps = args.steps, log = 20 }

-- The likeliest letter for place `at` of all sequences.
local following = orrery.func(function(ids, written, at) return model(ids, written):slice_at(2, at, 1):argmax():reshape(-1) end)

local function turn(ids)
  local written = {}
  for i = 1, #ids do written[i] = { padding } end
  for t = 1, args.ctx do
    for i = 1, #ids do for j = t + 1, args.ctx do written[i][j] = padding end end
    local letters = following(tensor(ids), tensor(written), t - 1):tolist()
    for i = 1, #ids do written[i][t + 1] = letters[i] end
  end
  return written -- behind what the decoder began with
end

local right, fresh, _, wanted = 0, make(20)
for i, row in ipairs(turn(fresh)) do
  local same = true
  for t = 1, args.ctx do same = same and (wanted[i][t] == ignored or row[t + 1] == wanted[i][t]) end
  if same then right = right + 1 end
end
orrery.log("%d of 20 sequences not seen before turned round", right)
orrery.log("digest %s", orrery.digest(model))
