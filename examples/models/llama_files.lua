-- SPDX-License-Identifier: Apache-2.0
--
-- Where the tensors of models/llama.lua are in files of Hugging Face's transformers, and their config.json.
local orrery = require "orrery"

local from_transformers = orrery.weight_map {
  { "model.embed_tokens", "tok" }, { "model.norm", "norm" }, { "lm_head", "head" },
  { "model.layers.*.input_layernorm", "blocks.*.norm1" }, { "model.layers.*.post_attention_layernorm", "blocks.*.norm2" },
  { "model.layers.*.self_attn.q_proj", "blocks.*.q" }, { "model.layers.*.self_attn.k_proj", "blocks.*.k" },
  { "model.layers.*.self_attn.v_proj", "blocks.*.v" }, { "model.layers.*.self_attn.o_proj", "blocks.*.o" },
  { "model.layers.*.mlp.gate_proj", "blocks.*.gate" }, { "model.layers.*.mlp.up_proj", "blocks.*.up" },
  { "model.layers.*.mlp.down_proj", "blocks.*.down" },
}

-- c is what the model was made with; `positions` is the longest text that it is for.
local function config(c, positions)
  return {
    architectures = { "LlamaForCausalLM" }, model_type = "llama", hidden_act = "silu", vocab_size = c.vocab, hidden_size = c.dim,
    intermediate_size = c.hidden, num_hidden_layers = c.layers, num_attention_heads = c.heads,
    num_key_value_heads = c.kv_heads, max_position_embeddings = positions, rms_norm_eps = 1e-5, rope_theta = 10000.0,
    tie_word_embeddings = false, attention_bias = false, mlp_bias = false,
  }
end

return { from_transformers = from_transformers, config = config }
