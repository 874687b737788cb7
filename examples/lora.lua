-- SPDX-License-Identifier: Apache-2.0
--
-- Low-rank adapters: a small LLaMA learns Orrery's sources, is frozen, and learns the same in capitals by pairs of thin
-- matrices beside its queries and values. The pairs alone are trained, and saved as Hugging Face's PEFT has them; merged
-- into the weights they give the same logits at no cost.
--
--   orrery run examples/lora.lua save=/tmp
--   orrery run examples/lora.lua load=/tmp
--   orrery run -n 2 examples/lora.lua strategy=pipeline
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local Llama = require "models.llama"
local lora = require "models.lora"
local args = orrery.args {
  data = "", steps = 200, tune = 100, batch = 12, ctx = 48, microbatches = 12, seed = 1,
  dim = 64, heads = 4, kv_heads = 2, layers = 2, rank = 8, alpha = 16, lr = 3e-3, save = "", load = "",
  strategy = { "data", "pipeline" },
}
orrery.seed(args.seed)

local words = {}
for i, path in ipairs(args.data == "" and orrery.sources() or { args.data }) do
  local file <close> = assert(io.open(path))
  words[i] = file:read "a"
end
words = table.concat(words, "\n")
local function dataset(text) return orrery.data.text(text, { ctx = args.ctx, tokens = "bytes", string = true }) end

local model = Llama {
  vocab = 256, dim = args.dim, heads = args.heads, kv_heads = args.kv_heads, layers = args.layers, hidden = 3 * args.dim,
}
local function loss(b) return nn.cross_entropy(model(b.x), b.y) end

-- Trains what `params` holds for so many steps.
local function train(what, params, data, steps, decay)
  local run = orrery.compile(loss, {
    params = params, microbatches = args.microbatches, strategy = strategy[args.strategy] {}, clip = 1,
    optimizer = optim.adamw { lr = optim.cosine { peak = args.lr, warmup = 10, steps = steps }, decay = decay },
  })
  local part = { size = args.batch, limit = args.batch }
  local before = run:eval(data, part):mean()
  run:fit { data = data, size = args.batch, steps = steps, log = false }
  orrery.log("%s: loss %.4f before, %.4f after", what, before, run:eval(data, part):mean())
end
train("the base, on the text", model, dataset(words), args.steps, 0.1)

nn.freeze(model)
local scale, plain = args.alpha / args.rank, {}
for i, block in ipairs(model.blocks) do plain[i] = { q = block.q, v = block.v } end
local adapters = lora.adapters(model, args)

local count = 0
for _, p in ipairs(orrery.parameters(adapters)) do count = count + p.shape[1] * p.shape[2] end
orrery.log("%d numbers in the adapters", count)
if args.load ~= "" then
  adapters:load_weights(args.load .. "/adapter_model.safetensors", { map = lora.from_peft })
else
  train("the adapters, on capitals", adapters, dataset(words:upper()), args.tune, 0)
end
if args.save ~= "" then
  adapters:save_weights(args.save .. "/adapter_model.safetensors", { map = lora.from_peft, config = lora.config(args, "base") })
end

local ids = dataset(words:upper()):batch(1, { size = 1, shuffle = false }).x:read()
local function logits() return orrery.func(function(x) return model(x) end)(ids) end
local beside = logits()
local merged = orrery.func(function(weight, a, b) return weight + scale * b:matmul(a) end)
for i = 1, args.layers do
  for _, name in ipairs { "q", "v" } do
    local linear, pair = plain[i][name], adapters.blocks[i][name]
    linear.weight:write(merged(linear.weight:read(), pair.a:read(), pair.b:read()))
  end
end
for i = 1, args.layers do model.blocks[i].q, model.blocks[i].v = plain[i].q, plain[i].v end
local difference = orrery.func(function(x, y) return (x - y):abs():max(), x:abs():max() end)
local apart, largest = difference(beside, logits())
orrery.log("merged: logits up to %.3f, no more than %.1e apart", largest:item(), apart:item())
orrery.log("digest %s", orrery.digest(model))
