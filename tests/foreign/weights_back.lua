-- SPDX-License-Identifier: Apache-2.0
--
-- Trains a small GPT-2 or LLaMA for 20 steps and saves it for transformers, and its logits, for weights_back.py.
local orrery = require "orrery"
local args = orrery.args { folder = "", model = "gpt2" }
local nn, optim = orrery.nn, orrery.optim
local tokens = orrery.load(args.folder .. "/tokens.npy")
local model, map, config
if args.model == "gpt2" then
  local gpt2 = require "models.gpt2"
  local c = { vocab = 61, positions = 24, dim = 16, heads = 2, layers = 2 }
  model, map, config = gpt2.model(c), gpt2.from_transformers, gpt2.config(c)
else
  local files = require "models.llama_files"
  local c = { vocab = 61, dim = 16, hidden = 40, heads = 4, kv_heads = 2, layers = 2 }
  model, map, config = require "models.llama"(c), files.from_transformers, files.config(c, 24)
end
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.x) end,
  { params = model, optimizer = optim.adam { lr = 0.02 }, microbatches = 1 })
for _, batch in orrery.data.arrays { x = args.folder .. "/tokens.npy" }:batches { size = 3, steps = 20 } do run:step(batch) end
orrery.func(function(ids) return model(ids) end)(tokens):save(args.folder .. "/logits.npy")
model:save_weights(args.folder .. "/model.safetensors", { map = map, config = config })
local before = orrery.digest(model)
model:load_weights(args.folder .. "/model.safetensors", { map = map })
orrery.log("%s", before == orrery.digest(model) and "same" or "other")
