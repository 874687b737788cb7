-- MPT as it was timed (rows.py): f32 parameters in pieces that are gathered in bf16, by blocks, for each microbatch;
-- blocks that are computed again in backward.
local orrery = require "orrery"
local nn, strategy = orrery.nn, orrery.strategy
local a = orrery.args {
  layers = 32, dim = 4096, heads = 32, ctx = 2048, vocab = 50368, batch = 96, microbatch = 6, recompute = true, each = true,
}

local Block = nn.module("Block", function(m)
  m.ln1, m.ln2 = nn.layernorm(a.dim), nn.layernorm(a.dim)
  m.qkv, m.proj = nn.linear(a.dim, { a.dim, a.dim, a.dim }), nn.linear(a.dim, a.dim)
  m.mlp = nn.sequential { nn.linear(a.dim, 4 * a.dim), nn.gelu, nn.linear(4 * a.dim, a.dim) }
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = a.heads, causal = true }))
    return x + m.mlp(m.ln2(x))
  end
end)

local MPT = nn.module("MPT", function(m)
  m.tok, m.pos = nn.embedding(a.vocab, a.dim), nn.embedding(a.ctx, a.dim)
  m.blocks = nn.sequential(a.layers, function() return Block() end)
  m.norm = nn.layernorm(a.dim)
  m.head = nn.linear(a.dim, a.vocab, { bias = false, tie = m.tok.weight })
  return function(ids) return m.head(m.norm(m.blocks(m.tok(ids) + m.pos(orrery.iota(ids.shape[-1]))))) end
end)

local stack = { strategy.data {}, strategy.zero { stage = 3, each = a.each and 1 or 0 } }
if a.recompute then stack[#stack + 1] = strategy.recompute { path = "blocks.*" } end
stack[#stack + 1] = strategy.precision { compute = "bf16" }
stack[#stack + 1] = strategy.accumulate {}

require "one_step"(MPT(), a, stack)
