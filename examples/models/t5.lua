-- SPDX-License-Identifier: Apache-2.0
--
-- T5, and where its tensors are in files of Hugging Face's transformers.
local orrery = require "orrery"
local nn = orrery.nn

local EPS = 1e-6

local function linear(inputs, outputs, smaller)
  return nn.linear(inputs, outputs, { bias = false, init = nn.init.normal(inputs ^ -0.5 / (smaller or 1)) })
end

local Attention = nn.module("Attention", function(m, c)
  local dim, depth = c.dim, c.dim // c.heads
  m.q, m.k, m.v, m.o = linear(dim, dim, depth ^ 0.5), linear(dim, dim), linear(dim, dim), linear(dim, dim)
  return function(x, memory, options)
    options.heads, options.scale = c.heads, 1 -- the weights of queries begin small instead
    return m.o(nn.attention(m.q(x), m.k(memory), m.v(memory), options))
  end
end)

local Block = nn.module("Block", function(m, c, decodes)
  local function norm() return nn.rmsnorm(c.dim, { eps = EPS }) end
  m.norm1, m.attn, m.norm2 = norm(), Attention(c), norm()
  if decodes then m.norm3, m.cross = norm(), Attention(c) end
  m.up, m.down = linear(c.dim, 4 * c.dim), linear(4 * c.dim, c.dim)
  return function(x, options, memory, seen)
    local h = m.norm1(x)
    x = x + m.attn(h, h, options)
    if decodes then x = x + m.cross(m.norm3(x), memory, { mask = seen }) end
    return x + m.down(nn.relu(m.up(m.norm2(x))))
  end
end)

-- Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", 2020
-- (arXiv:1910.10683). Called with the ids to read and those written so far; c: vocab, padding (the id that is not seen),
-- dim, heads, layers, buckets, distance.
local model = nn.module("T5", function(m, c)
  m.tok = nn.embedding(c.vocab, c.dim, { init = nn.init.normal(1) })
  m.around = nn.relative_bias(c.heads, { buckets = c.buckets, distance = c.distance })
  m.behind = nn.relative_bias(c.heads, { buckets = c.buckets, distance = c.distance, causal = true })
  m.encoder, m.decoder = {}, {}
  for i = 1, c.layers do m.encoder[i], m.decoder[i] = Block(c, false), Block(c, true) end
  m.norm1, m.norm2 = nn.rmsnorm(c.dim, { eps = EPS }), nn.rmsnorm(c.dim, { eps = EPS })
  return function(ids, written)
    local batch, time, places = ids.shape[1], ids.shape[2], written.shape[2]
    local seen = ids:ne(c.padding):reshape(batch, 1, 1, time)
    local x, y, bias = m.tok(ids), m.tok(written), m.around(time, time)
    for i = 1, c.layers do x = m.encoder[i](x, { bias = bias, mask = seen }) end
    local memory = m.norm1(x)
    bias = m.behind(places, places)
    for i = 1, c.layers do y = m.decoder[i](y, { bias = bias, causal = true }, memory, seen) end
    return (m.norm2(y) * c.dim ^ -0.5):matmul(m.tok.weight, { transpose_b = true })
  end
end)

local from_transformers = orrery.weight_map {
  { "shared", "tok" }, { "encoder.final_layer_norm", "norm1" }, { "decoder.final_layer_norm", "norm2" },
  { "encoder.block.0.layer.0.SelfAttention.relative_attention_bias", "around" },
  { "decoder.block.0.layer.0.SelfAttention.relative_attention_bias", "behind" },
  { "encoder.block.*.layer.0.SelfAttention", "encoder.*.attn" }, { "encoder.block.*.layer.0.layer_norm", "encoder.*.norm1" },
  { "encoder.block.*.layer.1.DenseReluDense.wi", "encoder.*.up" },
  { "encoder.block.*.layer.1.DenseReluDense.wo", "encoder.*.down" },
  { "encoder.block.*.layer.1.layer_norm", "encoder.*.norm2" },
  { "decoder.block.*.layer.0.SelfAttention", "decoder.*.attn" }, { "decoder.block.*.layer.0.layer_norm", "decoder.*.norm1" },
  { "decoder.block.*.layer.1.EncDecAttention", "decoder.*.cross" },
  { "decoder.block.*.layer.1.layer_norm", "decoder.*.norm3" },
  { "decoder.block.*.layer.2.DenseReluDense.wi", "decoder.*.up" },
  { "decoder.block.*.layer.2.DenseReluDense.wo", "decoder.*.down" },
  { "decoder.block.*.layer.2.layer_norm", "decoder.*.norm2" },
}

-- config.json for transformers; `stop` is the id that ends a text.
local function config(c, stop)
  return {
    architectures = { "T5ForConditionalGeneration" }, model_type = "t5", vocab_size = c.vocab, d_model = c.dim,
    d_kv = c.dim // c.heads, d_ff = 4 * c.dim, num_layers = c.layers, num_decoder_layers = c.layers, num_heads = c.heads,
    feed_forward_proj = "relu", relative_attention_num_buckets = c.buckets, relative_attention_max_distance = c.distance,
    layer_norm_epsilon = EPS, dropout_rate = 0.0, tie_word_embeddings = true, pad_token_id = c.padding,
    decoder_start_token_id = c.padding, eos_token_id = stop,
  }
end

return { model = model, from_transformers = from_transformers, config = config }
