-- SPDX-License-Identifier: Apache-2.0
--
-- BERT that fills gaps, or that classifies texts, and where its tensors are in files of Hugging Face's transformers.
local orrery = require "orrery"
local nn = orrery.nn

local EPS = 1e-12

local Block = nn.module("Block", function(m, c)
  m.q, m.k, m.v, m.proj = nn.linear(c.dim, c.dim), nn.linear(c.dim, c.dim), nn.linear(c.dim, c.dim), nn.linear(c.dim, c.dim)
  m.mlp = nn.sequential { nn.linear(c.dim, 4 * c.dim), nn.gelu_exact, nn.linear(4 * c.dim, c.dim) }
  m.ln1, m.ln2 = nn.layernorm(c.dim, { eps = EPS }), nn.layernorm(c.dim, { eps = EPS })
  m.drop1, m.drop2 = nn.dropout(c.dropout), nn.dropout(c.dropout)
  return function(x, mask)
    local y = nn.attention(m.q(x), m.k(x), m.v(x), { heads = c.heads, mask = mask, dropout = c.dropout })
    x = m.ln1(x + m.drop1(m.proj(y))) -- norms after the sums, as in the paper
    return m.ln2(x + m.drop2(m.mlp(x)))
  end
end)

-- Devlin et al., "BERT", 2018 (arXiv:1810.04805). `kinds` tells the two halves of a sequence apart; c: vocab, positions,
-- padding (the id that is not seen), dim, heads, layers, dropout; with `classes` it gives logits of these, [batch, classes],
-- made of the first token.
local model = nn.module("Bert", function(m, c)
  m.tok, m.pos, m.kind = nn.embedding(c.vocab, c.dim), nn.embedding(c.positions, c.dim), nn.embedding(2, c.dim)
  m.norm, m.drop, m.blocks = nn.layernorm(c.dim, { eps = EPS }), nn.dropout(c.dropout), {}
  for i = 1, c.layers do m.blocks[i] = Block(c) end
  if c.classes then
    m.pooler, m.classify = nn.linear(c.dim, c.dim), nn.linear(c.dim, c.classes)
  else
    m.dense, m.ln = nn.linear(c.dim, c.dim), nn.layernorm(c.dim, { eps = EPS })
    m.decode = nn.linear(c.dim, c.vocab, { tie = m.tok.weight })
  end
  return function(ids, kinds)
    local batch, time = table.unpack(ids.shape)
    local seen = ids:ne(c.padding):reshape(batch, 1, 1, time)
    local x = m.drop(m.norm(m.tok(ids) + m.pos(orrery.iota(time)) + m.kind(kinds)))
    for i = 1, c.layers do x = m.blocks[i](x, seen) end
    if c.classes then return m.classify(m.drop(m.pooler(x:slice(2, 1, 1):reshape(batch, c.dim)):tanh())) end
    return m.decode(m.ln(nn.gelu_exact(m.dense(x))))
  end
end)

-- What tells which sentence follows another (cls.seq_relationship) is left out.
local from_transformers = orrery.weight_map({
  { "bert.embeddings.word_embeddings", "tok" }, { "bert.embeddings.position_embeddings", "pos" },
  { "bert.embeddings.token_type_embeddings", "kind" }, { "bert.embeddings.LayerNorm", "norm" },
  { "bert.encoder.layer.*.attention.self.query", "blocks.*.q" }, { "bert.encoder.layer.*.attention.self.key", "blocks.*.k" },
  { "bert.encoder.layer.*.attention.self.value", "blocks.*.v" },
  { "bert.encoder.layer.*.attention.output.dense", "blocks.*.proj" },
  { "bert.encoder.layer.*.attention.output.LayerNorm", "blocks.*.ln1" },
  { "bert.encoder.layer.*.intermediate.dense", "blocks.*.mlp.1" }, { "bert.encoder.layer.*.output.dense", "blocks.*.mlp.3" },
  { "bert.encoder.layer.*.output.LayerNorm", "blocks.*.ln2" }, { "cls.predictions.transform.dense", "dense" },
  { "cls.predictions.transform.LayerNorm", "ln" }, { "cls.predictions.bias", "decode.bias" },
  { "bert.pooler.dense", "pooler" }, { "classifier", "classify" },
}, { prefix = "bert." })

-- The same of files as old as bert-base-uncased, whose norms have gamma and beta.
local function from_old(name) return from_transformers((name:gsub("%.gamma$", ".weight"):gsub("%.beta$", ".bias"))) end

-- config.json for transformers.
local function config(c)
  return {
    architectures = { c.classes and "BertForSequenceClassification" or "BertForMaskedLM" }, model_type = "bert", hidden_act = "gelu", vocab_size = c.vocab, hidden_size = c.dim,
    num_hidden_layers = c.layers, num_attention_heads = c.heads, intermediate_size = 4 * c.dim,
    max_position_embeddings = c.positions, type_vocab_size = 2, layer_norm_eps = EPS, pad_token_id = c.padding,
    hidden_dropout_prob = c.dropout, attention_probs_dropout_prob = c.dropout, tie_word_embeddings = true,
  }
end

return { model = model, from_transformers = from_transformers, from_old = from_old, config = config }
