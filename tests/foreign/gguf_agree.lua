-- SPDX-License-Identifier: Apache-2.0
--
-- Trains a small GPT-2 or LLaMA for 20 steps and saves it as GGUF, and its logits, for gguf_agree.py.
local orrery = require "orrery"
local args = orrery.args { folder = "", model = "gpt2", tokenizer = "", vocab = 0 }
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local tokens = orrery.load(args.folder .. "/tokens.npy")
local model, map, config
if args.model == "gpt2" then
  local gpt2 = require "models.gpt2"
  local c = { vocab = args.vocab, positions = 1024, dim = 32, heads = 2, layers = 2 } -- transformers read no other number of these
  model, map, config = gpt2.model(c), gpt2.from_transformers, gpt2.config(c)
else
  local files = require "models.llama_files"
  local c = { vocab = args.vocab, dim = 32, hidden = 64, heads = 4, kv_heads = 2, layers = 2 }
  model, map, config = require "models.llama"(c), files.from_transformers, files.config(c, 24)
end
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.x) end,
  { params = model, optimizer = optim.adam { lr = 0.02 }, microbatches = 3, strategy = { strategy.data {}, strategy.zero { stage = 3 } } })
for _, batch in orrery.data.arrays { x = args.folder .. "/tokens.npy" }:batches { size = 3, steps = 20 } do run:step(batch) end
orrery.func(function(ids) return model(ids) end)(tokens):save(args.folder .. "/logits.npy")
model:save_weights(args.folder .. "/model.gguf", { map = map, config = config, tokenizer = args.tokenizer })
