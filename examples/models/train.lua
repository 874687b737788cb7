-- SPDX-License-Identifier: Apache-2.0
--
-- What the strategies' examples share: a character GPT on real text, trained under a stack; at the end
-- what the plan promised for this rank and what the run has used.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local GPT = require "models.gpt"

-- The arguments of such a script: these and its own.
local function arguments(own)
  local all = {
    data = "", steps = 40, batch = 12, ctx = 64, microbatches = 12, seed = 1,
    dim = 128, heads = 4, layers = 4, dropout = 0.1, lr = 1e-3, clip = 1.0, vocab = 0,
    reduce = "canonical",
  }
  for name, value in pairs(own or {}) do all[name] = value end
  return orrery.args(all)
end

-- A batch of zeros where only shapes matter: to plan with.
local function blank(args)
  local ids = orrery.func(function() return orrery.zeros({ args.batch, args.ctx }, "i32") end)()
  return orrery.data.arrays { x = ids, y = ids }
end

local function train(args, stack)
  orrery.seed(args.seed)
  local text = args.vocab > 0 and blank(args)
    or orrery.data.text(args.data == "" and orrery.sources() or args.data, { ctx = args.ctx })
  local model = GPT {
    vocab = args.vocab > 0 and args.vocab or text.vocab, ctx = args.ctx, dim = args.dim, heads = args.heads, layers = args.layers,
    dropout = args.dropout,
  }
  local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
    params = model, microbatches = args.microbatches, clip = args.clip, strategy = stack,
    reduce = args.reduce,
    optimizer = optim.adamw {
      lr = optim.cosine { peak = args.lr, warmup = 20, steps = args.steps, floor = args.lr / 10 },
      decay = 0.1,
    },
  })
  run:fit { data = text, size = args.batch, steps = args.steps, log = 10 }
  local used = run:counters()
  orrery.log("rank 0: arena %d bytes planned, %d used; %d bytes sent as predicted, %d counted",
    used.planned_arena_bytes, used.arena_bytes, used.predicted_bytes_sent, used.bytes_sent)
  orrery.log("digest %s", orrery.digest(model))
end

return { arguments = arguments, train = train }
