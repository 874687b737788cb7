-- SPDX-License-Identifier: Apache-2.0
--
-- BERT learns to fill the gaps: sequences that count up from a number of their own, padded to one length; in training
-- some of the numbers are hidden behind a mask and are what the loss asks for.
--
--   orrery run -n 2 examples/bert.lua
local orrery = require "orrery"
local bert = require "models.bert"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  steps = 400, batch = 16, ctx = 16, numbers = 29, microbatches = 16, seed = 1, samples = 2048,
  dim = 64, heads = 4, layers = 2, dropout = 0, lr = 3e-3,
}
orrery.seed(args.seed)
local padding, gap, first, ignored = 0, 1, 2, -100 -- the numbers are the ids from `first` on
local vocab = first + args.numbers

-- Rows of ids with gaps, of what was there, and of kinds.
local function make(samples)
  local x, y, kind = {}, {}, {}
  for i = 1, samples do
    local start = math.random(0, args.numbers - 1)
    local length, at = math.random(args.ctx // 2, args.ctx), math.random(3, args.ctx // 2)
    x[i], y[i], kind[i] = {}, {}, {}
    for t = 1, args.ctx do
      local id = t <= length and first + (start + t) % args.numbers or padding
      local hidden = t <= length and (t == at or math.random() < 0.1)
      x[i][t], y[i][t], kind[i][t] = hidden and gap or id, hidden and id or ignored, t <= length // 2 and 0 or 1
    end
  end
  local function tensor(rows) return orrery.tensor(rows, "i32") end
  return orrery.data.arrays { x = tensor(x), y = tensor(y), kind = tensor(kind) }
end

local model = bert.model {
  vocab = vocab, positions = args.ctx, padding = padding, dim = args.dim, heads = args.heads, layers = args.layers,
  dropout = args.dropout,
}
local function loss(b)
  local logits = model(b.x, b.kind)
  local asked = b.y:ne(ignored):cast "f32"
  local right = logits:argmax():eq(b.y):cast "f32" * asked
  return nn.cross_entropy(logits, b.y, { ignore = ignored }), { right = right:sum(), asked = asked:sum() }
end
local run = orrery.compile(loss, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {}, clip = 1,
  optimizer = optim.adamw {
    lr = optim.linear { peak = args.lr, warmup = 20, steps = args.steps }, decay = 0.01,
    groups = { { match = { "*.bias", "*ln*", "*norm*" }, decay = 0 } },
  },
})
run:fit { data = make(args.samples), size = args.batch, steps = args.steps, log = 20 }

local result = run:eval(make(64), { size = 64 })
orrery.log("%d of %d gaps filled in sequences not seen before", result:get "right", result:get "asked")
orrery.log("digest %s", orrery.digest(model))
