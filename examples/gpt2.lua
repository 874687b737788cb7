-- SPDX-License-Identifier: Apache-2.0
--
-- GPT-2 with 124 million parameters, on random tokens, on the tokens of a .bin file (u16, as nanoGPT's) or on the bytes
-- of any other. `weights` is a file that Hugging Face's transformers have saved (model.safetensors, or its index).
local orrery = require "orrery"
local gpt2 = require "models.gpt2"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  data = { "", help = "tokens (.bin) or text; left out: random tokens" },
  weights = { "", help = "model.safetensors, or its index, of Hugging Face's transformers" },
  checkpoints = { "", help = "folder of a series of checkpoints" },
  every = { 20, help = "steps between two of them" },
  steps = 20, batch = math.max(4, orrery.world.size), ctx = 64, microbatches = orrery.world.size, seed = 1, vocab = 50257, positions = 1024, dim = 768, heads = 12, layers = 12, lr = 3e-4,
}
orrery.seed(args.seed)

local function random_tokens(count)
  local ids = {}
  for i = 1, count do ids[i] = math.random(0, args.vocab - 1) end
  local x, y = {}, {}
  for row = 1, count // (args.ctx + 1) do
    local at = (row - 1) * (args.ctx + 1)
    x[row] = table.move(ids, at + 1, at + args.ctx, 1, {})
    y[row] = table.move(ids, at + 2, at + args.ctx + 1, 1, {})
  end
  return orrery.data.arrays { x = orrery.tensor(x, "i32"), y = orrery.tensor(y, "i32") }
end

local data
if args.data == "" then
  data = random_tokens(math.max(64, args.batch) * (args.ctx + 1))
elseif args.data:find "%.bin$" then
  data = orrery.data.tokens(args.data, { length = args.ctx })
else
  data = orrery.data.text(args.data, { ctx = args.ctx, tokens = "bytes" })
end

local model = gpt2.model(args)
if args.weights ~= "" then model:load_weights(args.weights, { map = gpt2.from_transformers }) end
local run = orrery.compile(function(batch) return nn.cross_entropy(model(batch.x), batch.y) end, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {}, clip = 1.0,
  optimizer = optim.adamw {
    lr = optim.constant { peak = args.lr, warmup = 10 }, decay = 0.1, b2 = 0.95,
    groups = { { match = { "*.bias", "*ln*", "*norm*" }, decay = 0 } },
  },
})

local saved = args.checkpoints ~= "" and { dir = args.checkpoints, every = args.every }
run:fit { data = data, size = args.batch, steps = args.steps, log = 1, checkpoints = saved }
if saved then
  local used = run:counters()
  orrery.log("waited %.2f s for checkpoints, copies of %.0f MB", used.checkpoint_seconds, used.checkpoint_bytes / 1e6)
end
orrery.log("digest %s", orrery.digest(model))
