-- SPDX-License-Identifier: Apache-2.0
--
-- Long sequences: a small GPT on lines of 8,192 characters, of which each rank has a part.
--
--   orrery plan -n 4 examples/context.lua
--   orrery run -n 4 examples/context.lua kind=ulysses
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  data = "", steps = 20, ctx = 8192, dim = 64, heads = 4, layers = 6, batch = 1, size = 0, kind = "gathered", chunks = 0,
}
orrery.seed(1)

local Block = nn.module("Block", function(m, c)
  m.ln1, m.ln2 = nn.layernorm(c.dim), nn.layernorm(c.dim)
  m.qkv, m.proj = nn.linear(c.dim, { c.dim, c.dim, c.dim }), nn.linear(c.dim, c.dim)
  m.mlp = nn.sequential { nn.linear(c.dim, 4 * c.dim), nn.gelu, nn.linear(4 * c.dim, c.dim) }
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = c.heads, causal = true }))
    return x + m.mlp(m.ln2(x))
  end
end)

local GPT = nn.module("GPT", function(m, c)
  m.tok, m.pos = nn.embedding(c.vocab, c.dim), nn.embedding(c.ctx, c.dim)
  m.blocks = nn.sequential(c.layers, function() return Block(c) end)
  m.norm = nn.layernorm(c.dim)
  m.head = nn.linear(c.dim, c.vocab, { bias = false, tie = m.tok.weight })
  return function(ids) return m.head(m.norm(m.blocks(m.tok(ids) + m.pos(orrery.iota(ids.shape[-1]))))) end
end)

local text = orrery.data.text(args.data == "" and orrery.sources() or args.data, { ctx = args.ctx })
local model = GPT { vocab = text.vocab, ctx = args.ctx, dim = args.dim, heads = args.heads, layers = args.layers }
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
  params = model, optimizer = optim.adamw { lr = 1e-3 },
  strategy = strategy.context { size = args.size, kind = args.kind, chunks = args.chunks },
})
run:fit { data = text, size = args.batch, steps = args.steps, log = 1 }
orrery.log("digest %s", orrery.digest(model))
