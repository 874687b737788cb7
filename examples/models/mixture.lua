-- SPDX-License-Identifier: Apache-2.0
--
-- A decoder as LLaMA's whose feed-forward layers are mixtures of experts, of Mixtral's and Qwen3's kind. Called with ids it
-- gives logits, the sum of the layers' losses and how many choices were dropped. c.experts are nn.switch's options.
local orrery = require "orrery"
local nn = orrery.nn

local function linear(inputs, outputs) return nn.linear(inputs, outputs, { bias = false, init = nn.init.normal(0.02) }) end

-- Each head's queries or keys with a norm of its own dims.
local function by_heads(x, heads, norm)
  return norm(x:reshape(x.shape[1], x.shape[2], heads, x.shape[3] // heads)):reshape(x.shape)
end

local Block = nn.module("Block", function(m, c)
  local depth = c.depth or c.dim // c.heads
  local inner, kv = depth * c.heads, depth * c.kv_heads
  m.norm1, m.norm2 = nn.rmsnorm(c.dim, { eps = c.eps }), nn.rmsnorm(c.dim, { eps = c.eps })
  m.q, m.k, m.v, m.o = linear(c.dim, inner), linear(c.dim, kv), linear(c.dim, kv), linear(inner, c.dim)
  if c.qk_norm then m.q_norm, m.k_norm = nn.rmsnorm(depth, { eps = c.eps }), nn.rmsnorm(depth, { eps = c.eps }) end
  m.experts = nn.switch(c.dim, c.experts)
  return function(x)
    local h = m.norm1(x)
    local q, k = m.q(h), m.k(h)
    if c.qk_norm then q, k = by_heads(q, c.heads, m.q_norm), by_heads(k, c.kv_heads, m.k_norm) end
    q = nn.rotary(q, { heads = c.heads, base = c.base })
    k = nn.rotary(k, { heads = c.kv_heads, base = c.base })
    x = x + m.o(nn.attention(q, k, m.v(h), { heads = c.heads, kv_heads = c.kv_heads, causal = true }))
    local y, aux = m.experts(m.norm2(x))
    return x + y, aux
  end
end)

local model = nn.module("Mixture", function(m, c)
  m.tok, m.blocks = nn.embedding(c.vocab, c.dim), {}
  for i = 1, c.layers do m.blocks[i] = Block(c) end
  m.norm, m.head = nn.rmsnorm(c.dim, { eps = c.eps }), linear(c.dim, c.vocab)
  return function(ids)
    local x, loss, dropped = m.tok(ids), 0, 0
    for i = 1, c.layers do
      local aux
      x, aux = m.blocks[i](x)
      loss, dropped = aux.loss + loss, aux.dropped + dropped
    end
    return m.head(m.norm(x)), loss, dropped
  end
end)

-- A map of Hugging Face's names: those that all such models have, and the rules of one.
local function weight_map(rules)
  local all = {
    { "model.embed_tokens", "tok" }, { "model.norm", "norm" }, { "lm_head", "head" },
    { "model.layers.*.input_layernorm", "blocks.*.norm1" },
    { "model.layers.*.post_attention_layernorm", "blocks.*.norm2" },
    { "model.layers.*.self_attn.q_proj", "blocks.*.q" }, { "model.layers.*.self_attn.k_proj", "blocks.*.k" },
    { "model.layers.*.self_attn.v_proj", "blocks.*.v" }, { "model.layers.*.self_attn.o_proj", "blocks.*.o" },
  }
  return orrery.weight_map(table.move(rules, 1, #rules, #all + 1, all))
end

return { model = model, weight_map = weight_map }
