-- SPDX-License-Identifier: Apache-2.0
--
-- A GPT in bf16 of 7.5 billion parameters, one short sequence a rank, so that little but the training state takes
-- memory. STACK is the strategy that shares the batch.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local a = orrery.args { layers = 35, dim = 4096, vocab = 50257, ctx = 16, batch = 64, clip = 1.0,
  reduce = "canonical" }

local Block = nn.module("Block", function(m)
  m.ln1, m.ln2 = nn.layernorm(a.dim), nn.layernorm(a.dim)
  m.qkv, m.proj = nn.linear(a.dim, { a.dim, a.dim, a.dim }), nn.linear(a.dim, a.dim)
  m.mlp = nn.sequential { nn.linear(a.dim, 4 * a.dim), nn.gelu, nn.linear(4 * a.dim, a.dim) }
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = 32, causal = true }))
    return x + m.mlp(m.ln2(x))
  end
end)

local Gpt = nn.module("Gpt", function(m)
  m.tok, m.pos = nn.embedding(a.vocab, a.dim), nn.embedding(a.ctx, a.dim)
  m.blocks = nn.sequential(a.layers, function() return Block() end)
  m.norm, m.head = nn.layernorm(a.dim), nn.linear(a.dim, a.vocab, { bias = false })
  return function(ids) return m.head(m.norm(m.blocks(m.tok(ids) + m.pos(orrery.iota(a.ctx))))) end
end)

local model = Gpt()
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
  params = model, microbatches = a.batch, clip = a.clip, reduce = a.reduce, optimizer = optim.adamw { lr = 1e-4 },
  strategy = { strategy.data {}, STACK strategy.precision {}, strategy.recompute {} },
})
local ids = orrery.func(function() return orrery.zeros({ a.batch, a.ctx }, "i32") end)()
for _, batch in orrery.data.arrays { x = ids, y = ids }:batches { size = a.batch, steps = 1 } do run:step(batch) end
