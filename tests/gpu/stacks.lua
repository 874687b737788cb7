-- SPDX-License-Identifier: Apache-2.0
--
-- A few steps of a small model under the stack that is asked for (nccl.py). Prints every loss in full and a digest of
-- all parameters. Fails on a rank that sends other bytes than predicted. The model is a GPT; under `expert` it has
-- experts, under `gather` two encoders whose losses look at the whole batch.
local orrery = require "orrery"
local models = require "golden.models"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  stack = "data", steps = 3, batch = 8, ctx = 32, vocab = 256, dim = 64, heads = 4, layers = 2, compute = "f32",
  dtype = "f32", reduce = "canonical",
}
orrery.seed(1)

local function zero(stage) return { strategy.data {}, strategy.zero { stage = stage } } end
local stacks = {
  data = function() return { strategy.data {} } end,
  zero1 = function() return zero(1) end,
  zero2 = function() return zero(2) end,
  zero3 = function() return zero(3) end,
  tensor = function() return { strategy.tensor {} } end,
  pipeline = function() return { strategy.pipeline { schedule = "1f1b" } } end,
  server = function() return { strategy.server { servers = 2 } } end,
  expert = function() return { strategy.expert {}, strategy.data {} } end,
  context = function() return { strategy.context {} } end,
  ["3d"] = function() return { strategy.pipeline { size = 2 }, strategy.tensor { size = 2 }, strategy.data {} } end,
  topk = function() return { strategy.topk {} } end,
  diloco = function() return { strategy.diloco { every = 2 } } end,
  gather = function() return { strategy.data {} } end,
}
if not stacks[args.stack] then orrery.fail(("there is no stack '%s'"):format(args.stack)) end
local stack = stacks[args.stack]()
if args.compute ~= "f32" then stack[#stack + 1] = strategy.precision { compute = args.compute } end

-- Tokens through experts, one layer of them.
local Experts = nn.module("Experts", function(m)
  m.tok = nn.embedding(args.vocab, args.dim)
  m.experts = nn.switch(args.dim, { experts = 4, group = 16 })
  m.head = nn.linear(args.dim, args.vocab)
  return function(b)
    local y, aux = m.experts(m.tok(b.x))
    return nn.cross_entropy(m.head(y), b.y) + aux.loss
  end
end)

-- Finds each sample's pair among all of the batch. Rows and their numbers travel in `dtype` and as i64.
local Pairs = nn.module("Pairs", function(m)
  m.tok = nn.embedding(args.vocab, args.dim)
  m.left, m.right = nn.linear(args.dim, args.dim), nn.linear(args.dim, args.dim)
  return function(b)
    local own, others = m.left(m.tok(b.x):sum(2)), m.right(m.tok(b.y):sum(2))
    local logits = own:matmul(others:cast(args.dtype):all_gather("batch"):cast("f32"), { transpose_b = true })
    local index = orrery.sample_index()
    local numbers = index:all_gather("batch"):cast("f32"):mean()
    return nn.cross_entropy(logits, index) + numbers * 0.01
  end
end)

local model
if args.stack == "expert" then
  model = Experts()
elseif args.stack == "gather" then
  model = Pairs()
else
  model = models.gpt {
    vocab = args.vocab, positions = args.ctx, dim = args.dim, heads = args.heads, layers = args.layers,
  }
end
local function loss(b)
  if args.stack == "expert" or args.stack == "gather" then return model(b) end
  return nn.cross_entropy(model(b.x), b.y)
end
local run = orrery.compile(loss, {
  params = model, optimizer = optim.adamw { lr = 1e-3, decay = 0.1 }, clip = 1, microbatches = args.batch,
  reduce = args.reduce, strategy = stack,
})

local function batch_of(step)
  local x, y = {}, {}
  for i = 1, args.batch do
    x[i], y[i] = {}, {}
    for j = 1, args.ctx do
      x[i][j] = (step * 31 + i * 17 + j * (i + 3)) % args.vocab
      y[i][j] = (x[i][j] * 5 + 7) % args.vocab
    end
  end
  return { x = orrery.tensor(x, "i32"), y = orrery.tensor(y, "i32") }
end

for step = 1, args.steps do
  orrery.log("step %d loss %.9g", step, run:step(batch_of(step % 8)):mean())
end
local used = run:counters()
if used.predicted_bytes_sent ~= used.bytes_sent then
  orrery.fail(("%d bytes were sent, predicted were %d"):format(used.bytes_sent, used.predicted_bytes_sent))
end
orrery.log("digest %s", orrery.digest(model))
