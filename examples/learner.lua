-- SPDX-License-Identifier: Apache-2.0
--
-- What a learner loses and gains by sending less: a character GPT on real text under one of several stacks.
-- tests/bench/learner.py makes the table of docs/strategies/learner.md of it.
--
--   orrery run -n 2 --link-speed 100MB examples/learner.lua stack=diloco10 steps=200
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local GPT = require "models.gpt"

local stacks = {
  data = function() return strategy.data {} end,
  average10 = function() return strategy.average { every = 10 } end,
  diloco10 = function() return strategy.diloco { every = 10 } end,
  diloco50 = function() return strategy.diloco { every = 50 } end,
  easgd = function() return strategy.easgd { every = 10 } end,
  gossip = function() return strategy.gossip { every = 10 } end,
  topk = function() return strategy.topk { fraction = 100 } end,
  powersgd = function() return strategy.powersgd { rank = 4 } end,
  int8 = function() return strategy.quantized { bits = 8 } end,
  onebit = function() return strategy.quantized { bits = 1 } end,
}
local args = orrery.args {
  stack = "data", data = "", steps = 1000, batch = 16, ctx = 64, seed = 1, dim = 128, heads = 4, layers = 4, lr = 1e-3,
}
local stack = stacks[args.stack]
if not stack then orrery.fail(("there is no stack '%s'"):format(args.stack)) end
orrery.seed(args.seed)

local text = orrery.data.text(args.data == "" and orrery.sources() or args.data, { ctx = args.ctx })
local train, valid = text:split(0.9)
local model = GPT {
  vocab = text.vocab, ctx = args.ctx, dim = args.dim, heads = args.heads, layers = args.layers, dropout = 0,
}
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
  params = model, clip = 1, microbatches = orrery.world.size, strategy = stack(),
  optimizer = optim.adamw {
    lr = optim.cosine { peak = args.lr, warmup = 20, steps = args.steps, floor = args.lr / 10 }, decay = 0.1,
  },
})

local start, loss = orrery.time(), nil
for _, batch in train:batches { size = args.batch, steps = args.steps } do loss = run:step(batch) end
local trained = loss:mean()  -- once the last step is done
local each = (orrery.time() - start) * 1000 / args.steps

local held_out, batches = 0, 20
for i = 1, batches do held_out = held_out + run:eval(valid:batch(i, { size = args.batch })):mean() / batches end
local used = run:counters()
orrery.log("%s: loss %.4f held-out %.4f, %.0f bytes a step predicted %.0f, %.2f ms a step", args.stack, trained, held_out,
  used.bytes_sent / args.steps, used.predicted_bytes_sent / args.steps, each)
