-- Models of the LLaMA kind as they were timed (rows.py, more_rows.py), and mixtures of them: bf16, parameters in pieces
-- that forward's gathering keeps for backward or not (`reshard`), sequence parallelism beside tensor parallelism.
local orrery = require "orrery"
local nn, strategy = orrery.nn, orrery.strategy
local mixture = require "mixture"
local a = orrery.args {
  layers = 32, dim = 4096, heads = 32, kv_heads = 8, width = 0, hidden = 14336, ctx = 8192, vocab = 128256, batch = 16,
  microbatch = 2, experts = 0, top = 1, half = false,
  tensor = 1, pipeline = 1, chunks = 0, data = 8, context = 1, expert = 1, sequence = true,
  stage = 3, group = 0, reshard = 1, offload = "none", again = "none", kind = "ring",
}
local dtype = a.half and "bf16" or "f32" -- of parameters and states
local width = a.width > 0 and a.width or a.dim // a.heads -- of a head

local function linear(inputs, outputs) return nn.linear(inputs, outputs, { bias = false, dtype = dtype }) end

local Gated = nn.module("Gated", function(m)
  m.up, m.down = linear(a.dim, { a.hidden, a.hidden }), linear(a.hidden, a.dim)
  return function(x)
    local gate, up = m.up(x)
    return m.down(gate:silu() * up)
  end
end)

local Block = nn.module("Block", function(m)
  m.norm1, m.norm2 = nn.rmsnorm(a.dim, { dtype = dtype }), nn.rmsnorm(a.dim, { dtype = dtype })
  m.qkv = linear(a.dim, { a.heads * width, a.kv_heads * width, a.kv_heads * width })
  m.o = linear(a.heads * width, a.dim)
  m.mlp = a.experts > 0 and mixture(a) or Gated()
  return function(x)
    local q, k, v = m.qkv(m.norm1(x))
    q, k = nn.rotary(q, { heads = a.heads }), nn.rotary(k, { heads = a.kv_heads })
    x = x + m.o(nn.attention(q, k, v, { heads = a.heads, kv_heads = a.kv_heads, causal = true }))
    return x + m.mlp(m.norm2(x))
  end
end)

local Llama = nn.module("Llama", function(m)
  m.tok = nn.embedding(a.vocab, a.dim, { dtype = dtype })
  m.blocks = nn.sequential(a.layers, function() return Block() end)
  m.norm, m.head = nn.rmsnorm(a.dim, { dtype = dtype }), linear(a.dim, a.vocab)
  return function(ids) return m.head(m.norm(m.blocks(m.tok(ids)))) end
end)

local stack = {}
if a.pipeline > 1 and a.chunks > 0 then
  stack[1] = strategy.pipeline { size = a.pipeline, schedule = "interleaved", chunks = a.chunks }
elseif a.pipeline > 1 then -- a layer in every chunk but the first (the embedding) and the last (the head)
  local stages = { "tok" }
  for i = 1, a.layers do stages[i + 1] = ("blocks.%d"):format(i) end
  stages[a.layers + 2] = "norm,head"
  stack[1] = strategy.pipeline {
    size = a.pipeline, schedule = "interleaved", chunks = #stages // a.pipeline, stages = table.concat(stages, ";"),
  }
end
stack[#stack + 1] = strategy.data { size = a.data }
local several = a.pipeline == 1 and a.batch > a.microbatch * a.data * a.expert -- microbatches of a rank, one after another
if a.data * a.expert > 1 then
  stack[#stack + 1] = strategy.zero {
    stage = a.stage, group = a.group, reshard = a.reshard, offload = a.offload, each = several and a.stage > 1,
  }
end
if a.context > 1 then stack[#stack + 1] = strategy.context { size = a.context, kind = a.kind } end
if a.expert > 1 then stack[#stack + 1] = strategy.expert { size = a.expert, over = "batch" } end
if a.tensor > 1 then
  stack[#stack + 1] = strategy.tensor {
    size = a.tensor, sequence = a.sequence,
    column = "blocks.*.qkv, blocks.*.mlp.up", row = "blocks.*.o, blocks.*.mlp.down",
  }
end
if a.again == "blocks" then stack[#stack + 1] = strategy.recompute { path = "blocks.*" } end
if a.again == "selective" then stack[#stack + 1] = strategy.recompute { mode = "selective" } end
if a.again == "half" then -- every second block
  local paths = {}
  for i = 1, a.layers, 2 do paths[#paths + 1] = ("blocks.%d"):format(i) end
  stack[#stack + 1] = strategy.recompute { path = paths }
end
stack[#stack + 1] = strategy.precision { compute = "bf16" }
if several then stack[#stack + 1] = strategy.accumulate {} end

require "one_step"(Llama(), a, stack)
