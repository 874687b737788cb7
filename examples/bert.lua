-- SPDX-License-Identifier: Apache-2.0
--
-- BERT learns to fill the gaps: sequences that count up from a number of their own, padded to one length; in training
-- some of the numbers are hidden behind a mask and are what the loss asks for.
--
--   orrery run -n 2 examples/bert.lua
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  steps = 400, batch = 16, ctx = 16, numbers = 29, microbatches = 16, seed = 1, samples = 2048,
  dim = 64, heads = 4, layers = 2, dropout = 0, lr = 3e-3,
}
orrery.seed(args.seed)
local padding, gap, first, ignored = 0, 1, 2, -100 -- the numbers are the ids from `first` on
local vocab = first + args.numbers

local Block = nn.module("Block", function(m)
  m.qkv, m.proj = nn.linear(args.dim, { args.dim, args.dim, args.dim }), nn.linear(args.dim, args.dim)
  m.mlp = nn.sequential { nn.linear(args.dim, 4 * args.dim), nn.gelu_exact, nn.linear(4 * args.dim, args.dim) }
  m.ln1, m.ln2 = nn.layernorm(args.dim, { eps = 1e-12 }), nn.layernorm(args.dim, { eps = 1e-12 })
  m.drop1, m.drop2 = nn.dropout(args.dropout), nn.dropout(args.dropout)
  return function(x, mask)
    local q, k, v = m.qkv(x)
    local y = nn.attention(q, k, v, { heads = args.heads, mask = mask, dropout = args.dropout })
    x = m.ln1(x + m.drop1(m.proj(y))) -- norms after the sums, as in the paper
    return m.ln2(x + m.drop2(m.mlp(x)))
  end
end)

-- Devlin et al., "BERT", 2018 (arXiv:1810.04805). `kinds` tells the two halves of a sequence apart.
local Bert = nn.module("Bert", function(m)
  m.tok, m.pos, m.kind = nn.embedding(vocab, args.dim), nn.embedding(args.ctx, args.dim), nn.embedding(2, args.dim)
  m.norm, m.drop, m.blocks = nn.layernorm(args.dim, { eps = 1e-12 }), nn.dropout(args.dropout), {}
  for i = 1, args.layers do m.blocks[i] = Block() end
  m.dense, m.ln = nn.linear(args.dim, args.dim), nn.layernorm(args.dim, { eps = 1e-12 })
  m.decode = nn.linear(args.dim, vocab, { tie = m.tok.weight })
  return function(ids, kinds)
    local batch, time = table.unpack(ids.shape)
    local seen = ids:ne(padding):reshape(batch, 1, 1, time)
    local x = m.drop(m.norm(m.tok(ids) + m.pos(orrery.iota(time)) + m.kind(kinds)))
    for i = 1, args.layers do x = m.blocks[i](x, seen) end
    return m.decode(m.ln(nn.gelu_exact(m.dense(x))))
  end
end)

-- Rows of ids with gaps, of what was there, and of kinds.
local function make(samples)
  local x, y, kind = {}, {}, {}
  for i = 1, samples do
    local start = math.random(0, args.numbers - 1)
    local length, at = math.random(args.ctx // 2, args.ctx), math.random(3, args.ctx // 2)
    x[i], y[i], kind[i] = {}, {}, {}
    for t = 1, args.ctx do
      local id = t <= length and first + (start + t) % args.numbers or padding
      local hidden = t <= length and (t == at or math.random() < 0.1)
      x[i][t], y[i][t], kind[i][t] = hidden and gap or id, hidden and id or ignored, t <= length // 2 and 0 or 1
    end
  end
  local function tensor(rows) return orrery.tensor(rows, "i32") end
  return orrery.data.arrays { x = tensor(x), y = tensor(y), kind = tensor(kind) }
end

local model = Bert()
local function loss(b)
  local logits = model(b.x, b.kind)
  local asked = b.y:ne(ignored):cast "f32"
  local right = logits:argmax():eq(b.y):cast "f32" * asked
  return nn.cross_entropy(logits, b.y, { ignore = ignored }), { right = right:sum(), asked = asked:sum() }
end
local run = orrery.compile(loss, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {}, clip = 1,
  optimizer = optim.adamw {
    lr = optim.linear { peak = args.lr, warmup = 20, steps = args.steps }, decay = 0.01,
    groups = { { match = { "*.bias", "*ln*", "*norm*" }, decay = 0 } },
  },
})
run:fit { data = make(args.samples), size = args.batch, steps = args.steps, log = 20 }

local result = run:eval(make(64), { size = 64 })
orrery.log("%d of %d gaps filled in sequences not seen before", result:get "right", result:get "asked")
orrery.log("digest %s", orrery.digest(model))
