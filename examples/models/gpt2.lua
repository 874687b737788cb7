-- SPDX-License-Identifier: Apache-2.0
--
-- GPT-2, and where its tensors are in files of Hugging Face's transformers.
local orrery = require "orrery"
local nn = orrery.nn

local weight = nn.init.normal(0.02)

local Block = nn.module("Block", function(m, c)
  local into_residual = nn.init.normal(0.02 / math.sqrt(2 * c.layers))
  m.ln1, m.ln2 = nn.layernorm(c.dim), nn.layernorm(c.dim)
  m.qkv = nn.linear(c.dim, { c.dim, c.dim, c.dim }, { init = weight })
  m.proj = nn.linear(c.dim, c.dim, { init = into_residual })
  m.mlp = nn.sequential {
    nn.linear(c.dim, 4 * c.dim, { init = weight }), nn.gelu,
    nn.linear(4 * c.dim, c.dim, { init = into_residual }),
  }
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = c.heads, causal = true }))
    return x + m.mlp(m.ln2(x))
  end
end)

-- c: vocab, positions, dim, heads, layers.
local model = nn.module("GPT2", function(m, c)
  m.tok, m.pos = nn.embedding(c.vocab, c.dim), nn.embedding(c.positions, c.dim)
  m.blocks = nn.sequential(c.layers, function() return Block(c) end)
  m.norm = nn.layernorm(c.dim)
  m.head = nn.linear(c.dim, c.vocab, { bias = false, tie = m.tok.weight })
  return function(ids)
    local x = m.tok(ids) + m.pos(orrery.iota(ids.shape[-1]))
    return m.head(m.norm(m.blocks(x)))
  end
end)

-- Where the tensors are in files of transformers. The head is tied, and the masks of old files (h.0.attn.bias) are made anew:
-- both are left out.
local from_transformers = orrery.weight_map({
  { "transformer.wte", "tok" }, { "transformer.wpe", "pos" }, { "transformer.ln_f", "norm" },
  { "transformer.h.*.ln_1", "blocks.*.ln1" }, { "transformer.h.*.ln_2", "blocks.*.ln2" },
  { "transformer.h.*.attn.c_attn", "blocks.*.qkv", transpose = true },
  { "transformer.h.*.attn.c_proj", "blocks.*.proj", transpose = true },
  { "transformer.h.*.mlp.c_fc", "blocks.*.mlp.1", transpose = true },
  { "transformer.h.*.mlp.c_proj", "blocks.*.mlp.3", transpose = true },
}, { prefix = "transformer." })

-- config.json for transformers.
local function config(c)
  return {
    architectures = { "GPT2LMHeadModel" }, model_type = "gpt2", activation_function = "gelu_new", vocab_size = c.vocab,
    n_positions = c.positions, n_embd = c.dim, n_layer = c.layers, n_head = c.heads, layer_norm_epsilon = 1e-5,
    tie_word_embeddings = true, bos_token_id = c.vocab - 1, eos_token_id = c.vocab - 1,
  }
end

return { model = model, from_transformers = from_transformers, config = config }
