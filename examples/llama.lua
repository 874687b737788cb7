-- SPDX-License-Identifier: Apache-2.0
--
-- A LLaMA of characters: trains on any text and writes some of its own, one character a call: the keys and values of
-- earlier ones are in a cache. With cache=false every character costs a pass over the whole text, and is the same.
--
--   orrery run examples/llama.lua steps=300
--   orrery run examples/llama.lua steps=300 temperature=0 cache=false
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local Llama = require "models.llama"
local args = orrery.args {
  data = "", steps = 300, batch = 12, ctx = 64, microbatches = 12, seed = 1,
  dim = 128, heads = 4, kv_heads = 2, layers = 4, lr = 1e-3,
  sample = 64, prompt = "local ", temperature = 0.8, cache = true, save = "", load = "",
}
orrery.seed(args.seed)

local text = orrery.data.text(args.data == "" and orrery.sources() or args.data, { ctx = args.ctx })
local model = Llama {
  vocab = text.vocab, dim = args.dim, heads = args.heads, kv_heads = args.kv_heads, layers = args.layers,
  hidden = args.dim * 8 // 3 // 8 * 8,
}
orrery.log("%s", tostring(model))

local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {}, clip = 1,
  optimizer = optim.adamw {
    lr = optim.cosine { peak = args.lr, warmup = 20, steps = args.steps, floor = args.lr / 10 },
    decay = 0.1, b2 = 0.95, groups = { { match = "*norm*", decay = 0 } },
  },
})
if args.load ~= "" then run:load(args.load) end
run:fit { data = text, size = args.batch, steps = args.steps, log = 10 }
if args.save ~= "" then run:save(args.save) end

local function choose(logits)
  if args.temperature == 0 then return logits:argmax() end
  return orrery.categorical(logits / args.temperature)
end

local kept, width = {}, args.dim // args.heads * args.kv_heads
for i = 1, args.layers do
  kept[i] = { k = orrery.buffer { 1, args.ctx, width }, v = orrery.buffer { 1, args.ctx, width } }
end

-- What follows the character `id` at place `at`, those before being in the cache.
local from_cache = orrery.func(function(id, at)
  local cache = { at = at }
  for i = 1, args.layers do cache[i] = kept[i] end
  return choose(model(id, cache):reshape(1, -1))
end)
-- The same of all characters, [1, ctx], of which those behind `at` do not matter.
local from_all = orrery.func(function(ids, at) return choose(model(ids):slice_at(2, at, 1):reshape(1, -1)) end)

local function sample(prompt, length)
  local ids = text:encode(prompt):tolist()
  for place = 1, math.min(#ids + length - 1, args.ctx) do
    local following
    if args.cache then
      following = from_cache(orrery.tensor({ { ids[place] } }, "i32"), place - 1)
    elseif place >= #ids then
      local all = {}
      for i = 1, args.ctx do all[i] = ids[i] or 0 end
      following = from_all(orrery.tensor({ all }, "i32"), place - 1)
    end
    if place >= #ids then ids[place + 1] = following:item() end
  end
  return text:decode(ids)
end

if args.sample > 0 then orrery.log("--- sample ---\n%s\n---", sample(args.prompt, args.sample)) end
orrery.log("digest %s", orrery.digest(model))
