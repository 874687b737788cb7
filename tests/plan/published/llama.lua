-- Llama 3 and 3.1 as they were timed (rows.py): bf16, parameters in pieces that forward's gathering keeps for backward
-- or not (`reshard`), sequence parallelism beside tensor parallelism.
local orrery = require "orrery"
local nn, strategy = orrery.nn, orrery.strategy
local a = orrery.args {
  layers = 32, dim = 4096, heads = 32, hidden = 14336, ctx = 8192, vocab = 128256, batch = 16, microbatch = 2,
  tensor = 1, pipeline = 1, data = 8, reshard = 1, selective = false, sequence = true, blocks = false,
}

local function linear(inputs, outputs) return nn.linear(inputs, outputs, { bias = false }) end

local Block = nn.module("Block", function(m)
  local kv = a.dim // a.heads * 8
  m.norm1, m.norm2 = nn.rmsnorm(a.dim), nn.rmsnorm(a.dim)
  m.qkv, m.o = linear(a.dim, { a.dim, kv, kv }), linear(a.dim, a.dim)
  m.up, m.down = linear(a.dim, { a.hidden, a.hidden }), linear(a.hidden, a.dim)
  return function(x)
    local q, k, v = m.qkv(m.norm1(x))
    q, k = nn.rotary(q, { heads = a.heads }), nn.rotary(k, { heads = 8 })
    x = x + m.o(nn.attention(q, k, v, { heads = a.heads, kv_heads = 8, causal = true }))
    local gate, up = m.up(m.norm2(x))
    return x + m.down(gate:silu() * up)
  end
end)

local Llama = nn.module("Llama", function(m)
  m.tok = nn.embedding(a.vocab, a.dim)
  m.blocks = nn.sequential(a.layers, function() return Block() end)
  m.norm, m.head = nn.rmsnorm(a.dim), linear(a.dim, a.vocab)
  return function(ids) return m.head(m.norm(m.blocks(m.tok(ids)))) end
end)

local stack = {}
if a.pipeline > 1 then  -- a layer in every chunk but the first, which has the embedding alone, and the last, the head
  local stages = { "tok" }
  for i = 1, a.layers do stages[i + 1] = ("blocks.%d"):format(i) end
  stages[a.layers + 2] = "norm,head"
  stack[1] = strategy.pipeline {
    size = a.pipeline, schedule = "interleaved", chunks = #stages // a.pipeline, stages = table.concat(stages, ";"),
  }
end
stack[#stack + 1] = strategy.data { size = a.data }
stack[#stack + 1] = strategy.zero { stage = 3, reshard = a.reshard }
if a.tensor > 1 then
  stack[#stack + 1] = strategy.tensor {
    size = a.tensor, sequence = a.sequence, column = "blocks.*.qkv, blocks.*.up", row = "blocks.*.o, blocks.*.down",
  }
end
if a.blocks then stack[#stack + 1] = strategy.recompute { path = "blocks.*" } end
if a.selective then stack[#stack + 1] = strategy.recompute { mode = "selective" } end
stack[#stack + 1] = strategy.precision { compute = "bf16" }

require "one_step"(Llama(), a, stack)
