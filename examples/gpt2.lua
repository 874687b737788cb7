-- SPDX-License-Identifier: Apache-2.0
--
-- GPT-2 with 124 million parameters, on random tokens or on the bytes of a file.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  data = "", steps = 20, batch = math.max(4, orrery.world.size), ctx = 64, microbatches = 0,
  seed = 1, vocab = 50257, dim = 768, heads = 12, layers = 12, lr = 3e-4,
}
orrery.seed(args.seed)

local weight = nn.init.normal(0.02)
local into_residual = nn.init.normal(0.02 / math.sqrt(2 * args.layers))

local Block = nn.module("Block", function(m)
  m.ln1, m.ln2 = nn.layernorm(args.dim), nn.layernorm(args.dim)
  m.qkv = nn.linear(args.dim, { args.dim, args.dim, args.dim }, { init = weight })
  m.proj = nn.linear(args.dim, args.dim, { init = into_residual })
  m.mlp = nn.sequential {
    nn.linear(args.dim, 4 * args.dim, { init = weight }), nn.gelu,
    nn.linear(4 * args.dim, args.dim, { init = into_residual }),
  }
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = args.heads, causal = true }))
    return x + m.mlp(m.ln2(x))
  end
end)

local GPT2 = nn.module("GPT2", function(m)
  m.tok, m.pos = nn.embedding(args.vocab, args.dim), nn.embedding(1024, args.dim)
  m.blocks = nn.sequential(args.layers, function() return Block() end)
  m.norm = nn.layernorm(args.dim)
  m.head = nn.linear(args.dim, args.vocab, { bias = false, tie = m.tok.weight })
  return function(ids)
    local x = m.tok(ids) + m.pos(orrery.iota(ids.shape[-1]))
    return m.head(m.norm(m.blocks(x)))
  end
end)

local function random_tokens(count)
  local ids = {}
  for i = 1, count do ids[i] = math.random(0, args.vocab - 1) end
  local x, y = {}, {}
  for row = 1, count // (args.ctx + 1) do
    local at = (row - 1) * (args.ctx + 1)
    x[row] = table.move(ids, at + 1, at + args.ctx, 1, {})
    y[row] = table.move(ids, at + 2, at + args.ctx + 1, 1, {})
  end
  return orrery.data.arrays { x = orrery.tensor(x, "i32"), y = orrery.tensor(y, "i32") }
end

local data
if args.data == "" then
  data = random_tokens(math.max(64, args.batch) * (args.ctx + 1))
else
  data = orrery.data.text(args.data, { ctx = args.ctx, tokens = "bytes" })
end

local model = GPT2()
local run = orrery.compile(function(batch) return nn.cross_entropy(model(batch.x), batch.y) end, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {}, clip = 1.0,
  optimizer = optim.adamw {
    lr = optim.constant { peak = args.lr, warmup = 10 }, decay = 0.1, b2 = 0.95,
    groups = { { match = { "*.bias", "*ln*", "*norm*" }, decay = 0 } },
  },
})

local start = orrery.time()
for step, batch in data:batches { size = args.batch, steps = args.steps } do
  local loss = run:step(batch):mean()
  orrery.log("step %d loss %.4f  %.1f ms", step, loss, (orrery.time() - start) * 1000)
  start = orrery.time()
end
orrery.log("digest %s", orrery.digest(model))
