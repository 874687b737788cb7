-- SPDX-License-Identifier: Apache-2.0
--
-- Trains BERT, T5, LLaMA or low-rank adapters of LLaMA from the golden weights on the golden batches; a line for each
-- step: loss, gradient norm. transformers.py holds the PyTorch twins.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args {
  dir = "tests/golden", model = { "bert", "t5", "llama", "lora" }, microbatches = 1, stack = "{ strategy.data {} }",
}
local ignored = -100

local function no_bias(inputs, outputs) return nn.linear(inputs, outputs, { bias = false }) end

-- c: dim, heads, kv_heads, inner, linear.
local Attention = nn.module("Attention", function(m, c)
  local inner, kv_heads, linear = c.inner or c.dim, c.kv_heads or c.heads, c.linear or no_bias
  local kv = inner // c.heads * kv_heads
  m.q, m.k, m.v, m.o = linear(c.dim, inner), linear(c.dim, kv), linear(c.dim, kv), linear(inner, c.dim)
  return function(x, options, memory)
    memory = memory or x
    local q, k, v = m.q(x), m.k(memory), m.v(memory)
    if options.rotary then
      options.rotary = nil
      q, k = nn.rotary(q, { heads = c.heads }), nn.rotary(k, { heads = kv_heads })
    end
    options.heads, options.kv_heads = c.heads, kv_heads
    return m.o(nn.attention(q, k, v, options))
  end
end)

local BertBlock = nn.module("BertBlock", function(m, c)
  m.attn, m.ln1 = Attention { dim = c.dim, heads = c.heads, linear = nn.linear }, nn.layernorm(c.dim, { eps = 1e-12 })
  m.up, m.down = nn.linear(c.dim, 4 * c.dim), nn.linear(4 * c.dim, c.dim)
  m.ln2 = nn.layernorm(c.dim, { eps = 1e-12 })
  return function(x, mask)
    x = m.ln1(x + m.attn(x, { mask = mask }))
    return m.ln2(x + m.down(nn.gelu_exact(m.up(x))))
  end
end)

local Bert = nn.module("Bert", function(m, c)
  m.tok, m.pos, m.kind = nn.embedding(c.vocab, c.dim), nn.embedding(c.positions, c.dim), nn.embedding(2, c.dim)
  m.norm, m.blocks = nn.layernorm(c.dim, { eps = 1e-12 }), {}
  for i = 1, c.layers do m.blocks[i] = BertBlock(c) end
  m.dense, m.ln = nn.linear(c.dim, c.dim), nn.layernorm(c.dim, { eps = 1e-12 })
  m.decode = nn.linear(c.dim, c.vocab, { tie = m.tok.weight })
  return function(ids, kinds)
    local batch, time = table.unpack(ids.shape)
    local x, mask = m.norm(m.tok(ids) + m.pos(orrery.iota(time)) + m.kind(kinds)), ids:ne(0):reshape(batch, 1, 1, time)
    for i = 1, c.layers do x = m.blocks[i](x, mask) end
    return m.decode(m.ln(nn.gelu_exact(m.dense(x))))
  end
end)

local T5Block = nn.module("T5Block", function(m, c, cross)
  m.ln1, m.attn = nn.rmsnorm(c.dim, { eps = 1e-6 }), Attention(c)
  if cross then m.ln2, m.cross = nn.rmsnorm(c.dim, { eps = 1e-6 }), Attention(c) end
  m.ln3 = nn.rmsnorm(c.dim, { eps = 1e-6 })
  m.up, m.down = no_bias(c.dim, 4 * c.dim), no_bias(4 * c.dim, c.dim)
  return function(x, how, memory, mask)
    x = x + m.attn(m.ln1(x), { bias = how.bias, mask = how.mask, causal = how.causal, scale = 1 })
    if cross then x = x + m.cross(m.ln2(x), { mask = mask, scale = 1 }, memory) end
    return x + m.down(nn.relu(m.up(m.ln3(x))))
  end
end)

local T5 = nn.module("T5", function(m, c)
  m.tok = nn.embedding(c.vocab, c.dim)
  m.near = nn.relative_bias(c.heads, { buckets = 8, distance = 16 })
  m.behind = nn.relative_bias(c.heads, { buckets = 8, distance = 16, causal = true })
  m.encoder, m.decoder = {}, {}
  for i = 1, c.layers do m.encoder[i], m.decoder[i] = T5Block(c, false), T5Block(c, true) end
  m.norm1, m.norm2 = nn.rmsnorm(c.dim, { eps = 1e-6 }), nn.rmsnorm(c.dim, { eps = 1e-6 })
  return function(ids, labels)
    local batch, time, places = ids.shape[1], ids.shape[2], labels.shape[2]
    local mask, bias = ids:ne(0):reshape(batch, 1, 1, time), m.near(time, time)
    local x = m.tok(ids)
    for i = 1, c.layers do x = m.encoder[i](x, { bias = bias, mask = mask }) end
    local memory = m.norm1(x)
    labels, bias = labels:maximum(0), m.behind(places, places)
    x = m.tok(orrery.concat({ labels:slice(2, 1, 1) * 0, labels:slice(2, 1, places - 1) }, 2))
    for i = 1, c.layers do x = m.decoder[i](x, { bias = bias, causal = true }, memory, mask) end
    return (m.norm2(x) * c.dim ^ -0.5):matmul(m.tok.weight, { transpose_b = true })
  end
end)

local LlamaBlock = nn.module("LlamaBlock", function(m, c)
  m.norm1, m.attn, m.norm2 = nn.rmsnorm(c.dim), Attention(c), nn.rmsnorm(c.dim)
  m.gate, m.up, m.down = no_bias(c.dim, c.hidden), no_bias(c.dim, c.hidden), no_bias(c.hidden, c.dim)
  return function(x)
    x = x + m.attn(m.norm1(x), { causal = true, rotary = true })
    local h = m.norm2(x)
    return x + m.down(m.gate(h):silu() * m.up(h))
  end
end)

local Llama = nn.module("Llama", function(m, c)
  m.tok = nn.embedding(c.vocab, c.dim)
  m.blocks = nn.sequential(c.layers, function() return LlamaBlock(c) end)
  m.norm, m.head = nn.rmsnorm(c.dim), no_bias(c.dim, c.vocab)
  return function(ids) return m.head(m.norm(m.blocks(m.tok(ids)))) end
end)

-- What a pair of rank 2 adds to a linear layer.
local Lora = nn.module("Lora", function(m, linear, outputs, inputs)
  m.a, m.b = orrery.parameter { 2, inputs }, orrery.parameter { outputs, 2 }
  return function(x)
    local low = x:matmul(m.a, { transpose_b = true })
    return linear(x) + 2 * low:matmul(m.b, { transpose_b = true })
  end
end)

local function file(name) return ("%s/%s"):format(args.dir, name) end
local function small() return Llama { vocab = 31, dim = 32, heads = 4, kv_heads = 2, hidden = 48, layers = 2 } end

local model, rate, fields, logits = nil, 1e-2, { "x", "y" }, nil
if args.model == "bert" then
  model, fields = Bert { vocab = 31, positions = 12, dim = 16, heads = 2, layers = 2 }, { "x", "y", "kind" }
  logits = function(b) return model(b.x, b.kind) end
elseif args.model == "t5" then
  model = T5 { vocab = 31, dim = 16, heads = 4, inner = 24, layers = 2 }
  logits = function(b) return model(b.x, b.y) end
else
  model = small()
  logits = function(b) return model(b.x) end
end

local trained = model
if args.model == "lora" then
  model:load_weights(file "llama.safetensors")
  nn.freeze(model)
  rate = 2e-2
  trained = nn.module("Adapters", function(m)
    for i = 1, 2 do
      local attn = model.blocks[i].attn
      m[i] = { q = Lora(attn.q, 32, 32), v = Lora(attn.v, 16, 32) }
      attn.q, attn.v = m[i].q, m[i].v
    end
    return function() end
  end)()
end
trained:load_weights(file(args.model .. ".safetensors"))

local run = orrery.compile(function(b) return nn.cross_entropy(logits(b), b.y, { ignore = ignored }) end, {
  params = trained, microbatches = args.microbatches, clip = 1,
  strategy = assert(load("return " .. args.stack, "stack", "t", { strategy = orrery.strategy }))(),
  optimizer = optim.adamw { lr = rate, decay = 0.1, b2 = 0.99, eps = 1e-6 },
})
local data = {}
for _, name in ipairs(fields) do data[name] = file(("%s.%s.npy"):format(args.model == "lora" and "llama" or args.model, name)) end
for _, batch in orrery.data.arrays(data):batches { size = 6, steps = 20, shuffle = false } do
  local result = run:step(batch)
  orrery.log("%.9g %.9g", result:mean(), result:get "grad_norm")
end