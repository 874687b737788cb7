-- SPDX-License-Identifier: Apache-2.0
--
-- Saves a small GPT-2 or LLaMA as safetensors and as GGUF, or logs why it is refused.
local orrery = require "orrery"
local args = orrery.args { folder = "", model = "gpt2", tokenizer = "", vocab = 8, dtype = "f32", refuse = "" }
local made, map, config
if args.model == "gpt2" then
  local gpt2 = require "models.gpt2"
  local c = { vocab = args.vocab, positions = 6, dim = 4, heads = 2, layers = 2 }
  made, map, config = gpt2.model(c), gpt2.from_transformers, gpt2.config(c)
else
  local files = require "models.llama_files"
  local c = { vocab = args.vocab, dim = 32, hidden = 12, heads = 4, kv_heads = 2, layers = 1 }
  made, map, config = require "models.llama"(c), files.from_transformers, files.config(c, 6)
end
local model = args.dtype == "f32" and made or orrery.nn.module("Cast", function(m)
  m.tok = orrery.parameter({ args.vocab, 5 }, { dtype = args.dtype, init = orrery.nn.init.normal(1) })
  m.norm = orrery.parameter({ 5 }, { dtype = args.dtype, init = orrery.nn.init.normal(1) })
  return function(x) return x end
end)()
if args.dtype ~= "f32" then
  map = orrery.weight_map { { "transformer.wte.weight", "tok" }, { "transformer.ln_f.weight", "norm" } }
end
local function save(options)
  options.map = options.map == nil and map or options.map or nil
  local c = options.config
  options.config = c == nil and config or c or nil
  return pcall(model.save_weights, model, args.folder .. "/model.gguf", options)
end
local function changed(fields)
  local c = {}
  for name, value in pairs(config) do c[name] = value end
  for name, value in pairs(fields) do c[name] = value end
  return c
end
if args.refuse == "" then
  model:save_weights(args.folder .. "/model.safetensors", { map = map })
  local there, why = save { tokenizer = args.tokenizer ~= "" and args.tokenizer or nil }
  if not there then error(why, 0) end
else
  for _, options in ipairs {
    { map = false }, { config = false }, { max_shard_size = "1GB" }, { config = changed { model_type = "rwkv" } },
    { config = changed { n_layer = "two" } }, { config = changed { rope_scaling = { type = "linear" } } },
    { config = changed { activation_function = "relu" } }, { tokenizer = args.refuse },
    { tokenizer = "/nowhere" }, { map = orrery.weight_map { { "other", "tok" }, { "transformer.wpe", "pos" },
      { "transformer.ln_f", "norm" }, { "transformer.h.*", "blocks.*" } } },
  } do orrery.log("%s", select(2, save(options))) end
  orrery.log("%s", select(2, pcall(model.save_weights, model, args.folder .. "/a.safetensors", { tokenizer = "x" })))
end
