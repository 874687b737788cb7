-- A GPT in one of the layouts that Megatron-LM's papers time (rows.py), as it ran then: f16, gradients added up in
-- place and sent in one bucket after backward, attention as products and a softmax in memory with the scale on the
-- queries (Megatron's was part of the product, which is as cheap). All is computed again in backward, or, with sequence
-- parallelism, the attention alone.
local orrery = require "orrery"
local nn, strategy = orrery.nn, orrery.strategy
local a = orrery.args {
  layers = 24, dim = 2304, heads = 24, ctx = 2048, vocab = 51200, batch = 512, microbatch = 16,
  tensor = 1, pipeline = 1, data = 1, chunks = 1, sequence = false,
}

local Attention = nn.module("Attention", function(m)
  m.drop = nn.dropout(0.1)
  return function(q, k, v)
    local B, T, width = q.shape[1], q.shape[2], a.dim // a.heads
    local function by_head(x) return x:reshape(B, T, a.heads, width):transpose(2, 3) end
    local scores = (by_head(q) * width ^ -0.5):matmul(by_head(k):transpose(-1, -2))
    return m.drop(scores:softmax()):matmul(by_head(v)):transpose(2, 3):reshape(B, T, a.dim)
  end
end)

local Block = nn.module("Block", function(m)
  m.ln1, m.ln2 = nn.layernorm(a.dim), nn.layernorm(a.dim)
  m.qkv = nn.linear(a.dim, { a.dim, a.dim, a.dim })
  m.attention, m.proj = Attention(), nn.linear(a.dim, a.dim)
  m.mlp = nn.sequential { nn.linear(a.dim, 4 * a.dim), nn.gelu, nn.linear(4 * a.dim, a.dim) }
  m.drop1, m.drop2 = nn.dropout(0.1), nn.dropout(0.1)
  return function(x)
    x = x + m.drop1(m.proj(m.attention(m.qkv(m.ln1(x)))))
    return x + m.drop2(m.mlp(m.ln2(x)))
  end
end)

local Gpt = nn.module("GPT", function(m)
  m.tok, m.pos = nn.embedding(a.vocab, a.dim), nn.embedding(a.ctx, a.dim)
  m.drop = nn.dropout(0.1)
  m.blocks = nn.sequential(a.layers, function() return Block() end)
  m.norm = nn.layernorm(a.dim)
  m.head = nn.linear(a.dim, a.vocab, { bias = false, tie = m.tok.weight })
  return function(ids)
    return m.head(m.norm(m.blocks(m.drop(m.tok(ids) + m.pos(orrery.iota(ids.shape[-1]))))))
  end
end)

local stack = {}
if a.pipeline > 1 then
  local schedule = a.chunks > 1 and "interleaved" or "1f1b"
  stack[1] = strategy.pipeline { size = a.pipeline, schedule = schedule, chunks = a.chunks > 1 and a.chunks or 0 }
end
stack[#stack + 1] = strategy.data { size = a.data, bucket = 1 << 40 }
if a.tensor > 1 then
  stack[#stack + 1] = strategy.tensor {
    size = a.tensor, sequence = a.sequence,
    column = "blocks.*.qkv, blocks.*.mlp.1", row = "blocks.*.proj, blocks.*.mlp.3",
  }
end
stack[#stack + 1] = strategy.recompute { path = a.sequence and "blocks.*.attention" or "" }
stack[#stack + 1] = strategy.precision { compute = "f16" }
if a.pipeline == 1 then stack[#stack + 1] = strategy.accumulate {} end

require "one_step"(Gpt(), a, stack)
