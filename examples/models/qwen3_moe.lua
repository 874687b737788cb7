-- SPDX-License-Identifier: Apache-2.0
--
-- Qwen3-MoE, and where its tensors are in files of Hugging Face's transformers.
local mixture = require "models.mixture"

-- c: vocab, dim, depth (of a head), hidden, heads, kv_heads, layers, experts (how many) and top.
local function model(c)
  return mixture.model {
    vocab = c.vocab, dim = c.dim, depth = c.depth, heads = c.heads, kv_heads = c.kv_heads, layers = c.layers,
    qk_norm = true, eps = 1e-6, base = 1e6,
    experts = { experts = c.experts, top = c.top, hidden = c.hidden, gated = true, capacity = false, balance_over = "all" },
  }
end

local from_transformers = mixture.weight_map {
  { "model.layers.*.self_attn.q_norm", "blocks.*.q_norm" }, { "model.layers.*.self_attn.k_norm", "blocks.*.k_norm" },
  { "model.layers.*.mlp.gate", "blocks.*.experts.router" },
  { "model.layers.*.mlp.experts.*.gate_proj.weight", "blocks.*.experts.gate.*", transpose = true },
  { "model.layers.*.mlp.experts.*.up_proj.weight", "blocks.*.experts.up.*", transpose = true },
  { "model.layers.*.mlp.experts.*.down_proj.weight", "blocks.*.experts.down.*", transpose = true },
}

-- config.json; `positions` is the longest text that the model is for.
local function config(c, positions)
  return {
    architectures = { "Qwen3MoeForCausalLM" }, model_type = "qwen3_moe", hidden_act = "silu", vocab_size = c.vocab,
    hidden_size = c.dim, head_dim = c.depth, moe_intermediate_size = c.hidden, intermediate_size = c.hidden,
    num_hidden_layers = c.layers, num_attention_heads = c.heads, num_key_value_heads = c.kv_heads, num_experts = c.experts,
    num_experts_per_tok = c.top, norm_topk_prob = true, decoder_sparse_step = 1, max_position_embeddings = positions,
    rms_norm_eps = 1e-6, rope_theta = 1e6, tie_word_embeddings = false, attention_bias = false,
  }
end

return { model = model, from_transformers = from_transformers, config = config }
