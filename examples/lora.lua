-- SPDX-License-Identifier: Apache-2.0
--
-- Low-rank adapters: a small LLaMA learns Orrery's sources, is frozen, and learns the same in capitals by pairs of thin
-- matrices beside its queries and values. The pairs alone are trained and saved; merged into the weights they give the
-- same logits at no cost.
--
--   orrery run examples/lora.lua save=/tmp/capitals-
--   orrery run examples/lora.lua load=/tmp/capitals-
--   orrery run -n 2 examples/lora.lua strategy=pipeline
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local Llama = require "models.llama"
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

-- Hu et al., "LoRA", 2021 (arXiv:2106.09685): W x + alpha / rank * B A x, where B begins as zeros.
local scale = args.alpha / args.rank
local Lora = nn.module("Lora", function(m, linear)
  local outputs, inputs = table.unpack(linear.weight.shape)
  m.a = orrery.parameter({ args.rank, inputs }, { init = nn.init.normal(inputs ^ -0.5) })
  m.b = orrery.parameter({ outputs, args.rank }, { init = nn.init.zeros })
  return function(x)
    return linear(x) + scale * x:matmul(m.a, { transpose_b = true }):matmul(m.b, { transpose_b = true })
  end
end)

nn.freeze(model)
local adapters, plain = {}, {}
for i = 1, args.layers do
  local block = model.blocks[i]
  plain[i] = { q = block.q, v = block.v }
  adapters[i] = { q = Lora(block.q), v = Lora(block.v) }
  block.q, block.v = adapters[i].q, adapters[i].v
end

local function file(parameter) return args[args.load ~= "" and "load" or "save"] .. parameter.name .. ".npy" end
local count = 0
for _, p in ipairs(orrery.parameters(adapters)) do
  count = count + p.shape[1] * p.shape[2]
  if args.load ~= "" then p:write(orrery.load(file(p))) end
end
orrery.log("%d numbers in the adapters", count)
if args.load == "" then train("the adapters, on capitals", adapters, dataset(words:upper()), args.tune, 0) end
for _, p in ipairs(args.save ~= "" and orrery.parameters(adapters) or {}) do
  local value = p:read() -- from the ranks that hold it, so all call it
  if orrery.world.rank == 0 then value:save(file(p)) end
end

local ids = dataset(words:upper()):batch(1, { size = 1, shuffle = false }).x:read()
local function logits() return orrery.func(function(x) return model(x) end)(ids) end
local beside = logits()
local merged = orrery.func(function(weight, a, b) return weight + scale * b:matmul(a) end)
for i = 1, args.layers do
  for _, name in ipairs { "q", "v" } do
    local linear, pair = plain[i][name], adapters[i][name]
    linear.weight:write(merged(linear.weight:read(), pair.a:read(), pair.b:read()))
  end
end
for i = 1, args.layers do model.blocks[i].q, model.blocks[i].v = plain[i].q, plain[i].v end
local difference = orrery.func(function(x, y) return (x - y):abs():max(), x:abs():max() end)
local apart, largest = difference(beside, logits())
orrery.log("merged: logits up to %.3f, no more than %.1e apart", largest:item(), apart:item())
orrery.log("digest %s", orrery.digest(model))
