-- SPDX-License-Identifier: Apache-2.0
--
-- A Vision Transformer, and where its tensors are in files of Hugging Face's transformers.
local orrery = require "orrery"
local nn = orrery.nn

local EPS = 1e-12

local Block = nn.module("Block", function(m, c)
  m.ln1, m.ln2 = nn.layernorm(c.dim, { eps = EPS }), nn.layernorm(c.dim, { eps = EPS })
  m.q, m.k, m.v, m.proj = nn.linear(c.dim, c.dim), nn.linear(c.dim, c.dim), nn.linear(c.dim, c.dim), nn.linear(c.dim, c.dim)
  m.up, m.down = nn.linear(c.dim, c.hidden), nn.linear(c.hidden, c.dim)
  return function(x)
    local h = m.ln1(x)
    x = x + m.proj(nn.attention(m.q(h), m.k(h), m.v(h), { heads = c.heads }))
    return x + m.down(nn.gelu_exact(m.up(m.ln2(x))))
  end
end)

-- Dosovitskiy et al., arXiv:2010.11929; c: channels, size (of the square), patch, dim, hidden, heads, layers, classes.
local model = nn.module("ViT", function(m, c)
  local side = c.size // c.patch
  local patches = side * side
  m.embed = nn.conv2d(c.channels, c.dim, c.patch, { stride = c.patch })
  m.class = nn.parameter({ 1, 1, c.dim }, { init = nn.init.normal(0.02) })
  m.places = nn.parameter({ 1, patches + 1, c.dim }, { init = nn.init.normal(0.02) })
  m.blocks = nn.sequential(c.layers, function() return Block(c) end)
  m.norm, m.head = nn.layernorm(c.dim, { eps = EPS }), nn.linear(c.dim, c.classes)
  return function(images)
    local batch = images.shape[1]
    local x = m.embed(images):reshape(batch, c.dim, patches):transpose()
    x = orrery.concat({ m.class:expand(batch, 1, c.dim), x }, 2) + m.places
    return m.head(m.norm(m.blocks(x)):slice(2, 1, 1):reshape(batch, c.dim))
  end
end)

local from_transformers = orrery.weight_map({
  { "vit.embeddings.cls_token", "class" }, { "vit.embeddings.position_embeddings", "places" },
  { "vit.embeddings.patch_embeddings.projection", "embed" }, { "vit.layernorm", "norm" }, { "classifier", "head" },
  { "vit.encoder.layer.*.layernorm_before", "blocks.*.ln1" }, { "vit.encoder.layer.*.layernorm_after", "blocks.*.ln2" },
  { "vit.encoder.layer.*.attention.attention.query", "blocks.*.q" },
  { "vit.encoder.layer.*.attention.attention.key", "blocks.*.k" },
  { "vit.encoder.layer.*.attention.attention.value", "blocks.*.v" },
  { "vit.encoder.layer.*.attention.output.dense", "blocks.*.proj" },
  { "vit.encoder.layer.*.intermediate.dense", "blocks.*.up" }, { "vit.encoder.layer.*.output.dense", "blocks.*.down" },
}, { prefix = "vit." })

-- config.json for transformers; `names` are those of the classes.
local function config(c, names)
  local labels = {}
  for i, name in ipairs(names) do labels[tostring(i - 1)] = name end
  return {
    architectures = { "ViTForImageClassification" }, model_type = "vit", hidden_act = "gelu", image_size = c.size,
    patch_size = c.patch, num_channels = c.channels, hidden_size = c.dim, intermediate_size = c.hidden,
    num_hidden_layers = c.layers, num_attention_heads = c.heads, layer_norm_eps = EPS, qkv_bias = true,
    hidden_dropout_prob = 0.0, attention_probs_dropout_prob = 0.0, id2label = labels,
  }
end

return { model = model, from_transformers = from_transformers, config = config }
