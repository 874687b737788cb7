-- SPDX-License-Identifier: Apache-2.0
--
-- Mixtral, and where its tensors are in files of Hugging Face's transformers.
local mixture = require "models.mixture"

-- c: vocab, dim, hidden, heads, kv_heads, layers, experts (how many) and top.
local function model(c)
  return mixture.model {
    vocab = c.vocab, dim = c.dim, heads = c.heads, kv_heads = c.kv_heads, layers = c.layers, eps = 1e-5, base = 1e6,
    experts = { experts = c.experts, top = c.top, hidden = c.hidden, gated = true, capacity = false, balance_over = "all" },
  }
end

local from_transformers = mixture.weight_map {
  { "model.layers.*.block_sparse_moe.gate", "blocks.*.experts.router" },
  { "model.layers.*.block_sparse_moe.experts.*.w1.weight", "blocks.*.experts.gate.*", transpose = true },
  { "model.layers.*.block_sparse_moe.experts.*.w3.weight", "blocks.*.experts.up.*", transpose = true },
  { "model.layers.*.block_sparse_moe.experts.*.w2.weight", "blocks.*.experts.down.*", transpose = true },
}

-- config.json; `positions` is the longest text that the model is for.
local function config(c, positions)
  return {
    architectures = { "MixtralForCausalLM" }, model_type = "mixtral", hidden_act = "silu", vocab_size = c.vocab,
    hidden_size = c.dim, intermediate_size = c.hidden, num_hidden_layers = c.layers, num_attention_heads = c.heads,
    num_key_value_heads = c.kv_heads, num_local_experts = c.experts, num_experts_per_tok = c.top,
    max_position_embeddings = positions, rms_norm_eps = 1e-5, rope_theta = 1e6, tie_word_embeddings = false,
  }
end

return { model = model, from_transformers = from_transformers, config = config }
