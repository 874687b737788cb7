-- SPDX-License-Identifier: Apache-2.0
--
-- The logits of a BERT, T5, ViT, Mixtral or Qwen3-MoE with the weights of Hugging Face's transformers in `files`, and after some steps of
-- training if that is asked for; then all is saved to `save`, by their names and with a config.json.
local orrery = require "orrery"
local args = orrery.args { model = "bert", files = "", save = "", steps = 0 }
local nn = orrery.nn
local of = require("models." .. args.model)
local sizes = {
  bert = { vocab = 31, positions = 16, padding = 0, dim = 16, heads = 2, layers = 2, dropout = 0 },
  t5 = { vocab = 31, padding = 0, dim = 16, heads = 2, layers = 2, buckets = 8, distance = 10 },
  mixtral = { vocab = 31, dim = 16, hidden = 12, heads = 4, kv_heads = 2, layers = 2, experts = 4, top = 2 },
  qwen3_moe = { vocab = 31, dim = 16, depth = 8, hidden = 12, heads = 4, kv_heads = 2, layers = 2, experts = 6, top = 3 },
  vit = { channels = 3, size = 8, patch = 4, dim = 16, hidden = 32, heads = 2, layers = 2, classes = 5 },
}
local more = { bert = nil, t5 = 1, mixtral = 16, qwen3_moe = 16, vit = { "ring", "disc", "square", "cross", "line" } }
local c = sizes[args.model]
local model = of.model(c)
local x = orrery.load(args.files .. "/x.npy")
local y = (args.model == "bert" or args.model == "t5") and orrery.load(args.files .. "/y.npy") or nil
if args.steps == 0 then
  model:load_weights(args.files .. "/model.safetensors", { map = of.from_transformers })
else
  local run = orrery.compile(function(b)
    local logits = y and model(b.x, b.y) or model(b.x)
    return nn.cross_entropy(logits, args.model == "vit" and b.wanted or args.model == "t5" and b.y or b.x)
  end, { params = model, optimizer = orrery.optim.adam { lr = 0.01 }, microbatches = 1 })
  local data = orrery.data.arrays { x = x, y = y, wanted = { 0, 1, 2 } }
  for _, batch in data:batches { size = 3, steps = args.steps } do run:step(batch) end
end
local logits
if y then logits = orrery.func(function(a, b) return model(a, b) end)(x, y) else logits = (model(x)) end
logits:save(args.save .. "/logits.npy")
model:save_weights(args.save .. "/model.safetensors", { map = of.from_transformers, config = of.config(c, more[args.model]) })
