-- SPDX-License-Identifier: Apache-2.0
--
-- A character GPT: trains on any text, evaluates, and writes some of its own.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  data = { "", help = "a text file; left out: this program's own sources" },
  steps = { 300, help = "training steps" },
  batch = { 12, help = "samples of a step" },
  microbatches = { 12, help = "pieces of a batch, which the bits depend on" },
  ctx = { 64, help = "characters that the model sees" },
  dim = 128, heads = 4, layers = 4, dropout = 0.1,
  tie = { true, help = "the head's weights are the embedding's" },
  lr = { 1e-3, help = "learning rate at its peak" },
  clip = { 1.0, help = "largest norm of the gradients" },
  eval = { 100, help = "evaluate every so many steps; 0: never" },
  sample = { 200, help = "characters to write at the end" },
  prompt = { "local ", help = "what they begin with" },
  save = { "", help = "folder of the checkpoint written at the end" },
  load = { "", help = "folder of a checkpoint to continue from" },
  stop = { 0, help = "stop after so many of the steps; 0: after all" },
  log = { 10, help = "a line every so many steps; 0: by time" },
  verbose = { false, help = "print the tree of modules" }, seed = 1,
}
orrery.seed(args.seed)

local Block = nn.module("Block", function(m, c)
  m.ln1, m.ln2 = nn.layernorm(c.dim), nn.layernorm(c.dim)
  m.qkv = nn.linear(c.dim, { c.dim, c.dim, c.dim })
  m.proj = nn.linear(c.dim, c.dim)
  m.mlp = nn.sequential { nn.linear(c.dim, 4 * c.dim), nn.gelu, nn.linear(4 * c.dim, c.dim) }
  m.drop1, m.drop2 = nn.dropout(c.dropout), nn.dropout(c.dropout)
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.drop1(m.proj(nn.attention(q, k, v, { heads = c.heads, causal = true, dropout = c.dropout })))
    return x + m.drop2(m.mlp(m.ln2(x)))
  end
end)

local GPT = nn.module("GPT", function(m, c)
  m.tok, m.pos = nn.embedding(c.vocab, c.dim), nn.embedding(c.ctx, c.dim)
  m.drop = nn.dropout(c.dropout)
  m.blocks = nn.sequential(c.layers, function() return Block(c) end)
  m.norm = nn.layernorm(c.dim)
  m.head = nn.linear(c.dim, c.vocab, { bias = false, tie = c.tie and m.tok.weight })
  return function(ids)
    local x = m.tok(ids) + m.pos(orrery.iota(ids.shape[-1]))
    return m.head(m.norm(m.blocks(m.drop(x))))
  end
end)

local source = args.data
if source == "" then source = orrery.sources() end
local text = orrery.data.text(source, { ctx = args.ctx })
local train, valid = text:split(0.9)

local model = GPT {
  vocab = text.vocab, ctx = args.ctx, dim = args.dim, heads = args.heads, layers = args.layers,
  dropout = args.dropout, tie = args.tie,
}
-- The first line of a tree of modules counts the parameters.
orrery.log("%s", args.verbose and tostring(model) or tostring(model):match "[^\n]+")

local run = orrery.compile(function(batch) return nn.cross_entropy(model(batch.x), batch.y) end, {
  params = model, microbatches = args.microbatches, strategy = strategy.data {}, clip = args.clip,
  optimizer = optim.adamw {
    lr = optim.cosine { peak = args.lr, warmup = 20, steps = args.steps, floor = args.lr / 10 },
    decay = 0.1, b2 = 0.99,
    groups = { { match = { "*.bias", "*ln*", "*norm*" }, decay = 0 } },
  },
})
if args.load ~= "" then orrery.log("continuing after step %d", (run:load(args.load))) end

local last = args.stop > 0 and args.stop or args.steps
run:fit {
  data = train, size = args.batch, steps = last, log = args.log == 0 or args.log,
  eval = args.eval > 0 and valid, every = args.eval, eval_limit = args.eval > 0 and 8 * args.batch or 0,
}
if args.save ~= "" then run:save(args.save) end

-- One program of shape [1, ctx]: `at` is the place of the newest character.
local next_character = orrery.func(function(ids, at)
  local logits = model(ids):slice_at(2, at, 1):reshape(1, -1)
  return orrery.categorical(logits / 0.8)
end)

local function sample(prompt, length)
  local ids = text:encode(prompt):tolist()
  for _ = 1, length do
    local window, begin = {}, math.max(#ids - args.ctx, 0)
    for i = 1, args.ctx do window[i] = ids[begin + i] or 0 end
    local at = math.min(#ids, args.ctx) - 1
    ids[#ids + 1] = next_character(orrery.tensor({ window }, "i32"), at):item()
  end
  return text:decode(ids)
end

if args.sample > 0 then orrery.log("--- sample ---\n%s\n---", sample(args.prompt, args.sample)) end
orrery.log("digest %s", orrery.digest(model))
