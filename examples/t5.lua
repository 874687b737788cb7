-- SPDX-License-Identifier: Apache-2.0
--
-- T5, an encoder and a decoder, learns to turn sequences round: places are known only by how far they are apart, and
-- the decoder looks at the encoder's places that are no padding.
--
--   orrery run -n 2 examples/t5.lua
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  steps = 600, batch = 32, ctx = 8, letters = 10, microbatches = 16, seed = 1, samples = 4096,
  dim = 64, heads = 4, layers = 1, buckets = 16, distance = 16, lr = 3e-3,
}
orrery.seed(args.seed)
local padding, stop, first, ignored = 0, 1, 2, -100 -- the letters are the ids from `first` on

local function linear(inputs, outputs, smaller)
  return nn.linear(inputs, outputs, { bias = false, init = nn.init.normal(inputs ^ -0.5 / (smaller or 1)) })
end

local Attention = nn.module("Attention", function(m)
  local dim, depth = args.dim, args.dim // args.heads
  m.q, m.k, m.v, m.o = linear(dim, dim, depth ^ 0.5), linear(dim, dim), linear(dim, dim), linear(dim, dim)
  return function(x, memory, options)
    options.heads, options.scale = args.heads, 1 -- the weights of queries begin small instead
    return m.o(nn.attention(m.q(x), m.k(memory), m.v(memory), options))
  end
end)

local Block = nn.module("Block", function(m, decodes)
  m.norm1, m.attn, m.norm2 = nn.rmsnorm(args.dim), Attention(), nn.rmsnorm(args.dim)
  if decodes then m.norm3, m.cross = nn.rmsnorm(args.dim), Attention() end
  m.up, m.down = linear(args.dim, 4 * args.dim), linear(4 * args.dim, args.dim)
  return function(x, options, memory, seen)
    local h = m.norm1(x)
    x = x + m.attn(h, h, options)
    if decodes then x = x + m.cross(m.norm3(x), memory, { mask = seen }) end
    return x + m.down(nn.relu(m.up(m.norm2(x))))
  end
end)

-- Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", 2020
-- (arXiv:1910.10683). Called with the ids to read and those written so far.
local T5 = nn.module("T5", function(m, vocab)
  local near = { buckets = args.buckets, distance = args.distance }
  m.tok = nn.embedding(vocab, args.dim, { init = nn.init.normal(1) })
  m.around = nn.relative_bias(args.heads, near)
  m.behind = nn.relative_bias(args.heads, { buckets = args.buckets, distance = args.distance, causal = true })
  m.encoder, m.decoder = {}, {}
  for i = 1, args.layers do m.encoder[i], m.decoder[i] = Block(false), Block(true) end
  m.norm1, m.norm2 = nn.rmsnorm(args.dim), nn.rmsnorm(args.dim)
  return function(ids, written)
    local batch, time, places = ids.shape[1], ids.shape[2], written.shape[2]
    local seen = ids:ne(padding):reshape(batch, 1, 1, time)
    local x, y, bias = m.tok(ids), m.tok(written), m.around(time, time)
    for i = 1, args.layers do x = m.encoder[i](x, { bias = bias, mask = seen }) end
    local memory = m.norm1(x)
    bias = m.behind(places, places)
    for i = 1, args.layers do y = m.decoder[i](y, { bias = bias, causal = true }, memory, seen) end
    return (m.norm2(y) * args.dim ^ -0.5):matmul(m.tok.weight, { transpose_b = true })
  end
end)

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
local model = T5(first + args.letters)
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
