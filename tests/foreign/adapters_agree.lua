-- SPDX-License-Identifier: Apache-2.0
--
-- Writes a small LLaMA, adapters of it and the logits of both for adapters_agree.py, or the logits with PEFT's adapters.
local orrery = require "orrery"
local args = orrery.args { folder = "", load = "" }
local files, lora = require "models.llama_files", require "models.lora"
orrery.seed(1)
local sizes = { vocab = 61, dim = 16, hidden = 40, heads = 4, kv_heads = 2, layers = 2 }
local model = require "models.llama"(sizes)
if args.load == "" then
  model:save_weights(args.folder .. "/base/model.safetensors", { map = files.from_transformers, config = files.config(sizes, 24) })
else
  model:load_weights(args.folder .. "/base/model.safetensors", { map = files.from_transformers })
end
local pair = { rank = 3, alpha = 12 }
local adapters = lora.adapters(model, pair)
if args.load == "" then
  for _, p in ipairs(orrery.parameters(adapters)) do
    p:write(orrery.func(function() return orrery.uniform(p.shape) - 0.5 end)())
  end
  adapters:save_weights(args.folder .. "/adapters/adapter_model.safetensors",
    { map = lora.from_peft, config = lora.config(pair, args.folder .. "/base") })
else
  adapters:load_weights(args.load .. "/adapter_model.safetensors", { map = lora.from_peft })
end
local ids = orrery.load(args.folder .. "/tokens.npy")
orrery.func(function(x) return adapters(x) end)(ids):save(args.folder .. "/logits.npy")
