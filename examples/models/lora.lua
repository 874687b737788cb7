-- SPDX-License-Identifier: Apache-2.0
--
-- Low-rank adapters beside the queries and values of models/llama.lua, and where they are in files of Hugging Face's PEFT.
local orrery = require "orrery"
local nn = orrery.nn

-- Hu et al., "LoRA", 2021 (arXiv:2106.09685): W x + alpha / rank * B A x, where B begins as zeros. The layer itself is no
-- part of it, so that the pair alone is trained and saved.
local Lora = nn.module("Lora", function(m, linear, c)
  local outputs, inputs = table.unpack(linear.weight.shape)
  m.a = orrery.parameter({ c.rank, inputs }, { init = nn.init.normal(inputs ^ -0.5) })
  m.b = orrery.parameter({ outputs, c.rank }, { init = nn.init.zeros })
  return function(x)
    return linear(x) + c.alpha / c.rank * x:matmul(m.a, { transpose_b = true }):matmul(m.b, { transpose_b = true })
  end
end)

-- The adapters of a frozen model, which it takes at once; c: rank, alpha. Called, they are the model.
local adapters = nn.module("Adapters", function(m, model, c)
  m.blocks = {}
  for i, block in ipairs(model.blocks) do
    m.blocks[i] = { q = Lora(block.q, c), v = Lora(block.v, c) }
    block.q, block.v = m.blocks[i].q, m.blocks[i].v
  end
  return function(...) return model(...) end
end)

local from_peft = orrery.weight_map {
  { "base_model.model.model.layers.*.self_attn.q_proj.lora_A.weight", "blocks.*.q.a" },
  { "base_model.model.model.layers.*.self_attn.q_proj.lora_B.weight", "blocks.*.q.b" },
  { "base_model.model.model.layers.*.self_attn.v_proj.lora_A.weight", "blocks.*.v.a" },
  { "base_model.model.model.layers.*.self_attn.v_proj.lora_B.weight", "blocks.*.v.b" },
}

-- adapter_config.json for PEFT; `base` is where transformers find the model.
local function config(c, base)
  return {
    peft_type = "LORA", task_type = "CAUSAL_LM", base_model_name_or_path = base, r = c.rank, lora_alpha = c.alpha,
    target_modules = { "q_proj", "v_proj" }, lora_dropout = 0.0, bias = "none", fan_in_fan_out = false, inference_mode = true,
  }
end

return { adapters = adapters, from_peft = from_peft, config = config }
