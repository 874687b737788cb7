-- SPDX-License-Identifier: Apache-2.0
--
-- A small model trained under the strategy stack that the caller puts where STACK stands; prints
-- every loss and gradient norm in full, and a digest of all parameters. Fails on a rank that sends other
-- bytes than the strategies predicted, or copies others between memory tiers than planned.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { model = "gpt", optimizer = "adamw", steps = 10, batch = 12, microbatches = 8, stop = 0,
  load = "", save = "", eval = true, half = 0, vocab = 96, tie = true, drop = 0.1, penalty = false, numerics = "exact" }
orrery.seed(3)

local Block = nn.module("Block", function(m, dim)
  m.ln1, m.ln2 = nn.layernorm(dim), nn.layernorm(dim)
  m.qkv, m.proj = nn.linear(dim, { dim, dim, dim }), nn.linear(dim, dim)
  m.mlp = nn.sequential { nn.linear(dim, 4 * dim), nn.gelu, nn.linear(4 * dim, dim) }
  m.drop = nn.dropout(0.1)
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.drop(m.proj(nn.attention(q, k, v, { heads = 4, causal = true, dropout = args.drop })))
    return x + m.mlp(m.ln2(x))
  end
end)

local GPT = nn.module("GPT", function(m)
  m.tok, m.pos, m.drop = nn.embedding(args.vocab, 32), nn.embedding(16, 32), nn.dropout(0.1)
  m.blocks = nn.sequential(4, function() return Block(32) end)
  m.norm = nn.layernorm(32)
  m.head = nn.linear(32, args.vocab, { bias = false, tie = args.tie and m.tok.weight or nil })
  return function(ids) return m.head(m.norm(m.blocks(m.drop(m.tok(ids) + m.pos(orrery.iota(ids.shape[-1])))))) end
end)

local MLP = nn.module("MLP", function(m)
  m.a, m.b, m.c, m.d = nn.linear(16, 48), nn.linear(48, 40), nn.linear(40, 32), nn.linear(32, 96)
  return function(x) return m.d(nn.relu(m.c(nn.tanh(m.b(nn.gelu(m.a(x))))))) end
end)

local sign = optim.define("sign", {
  options = { lr = 0.003, b = 0.9 },
  states = { "m" },
  update = function(p, g, s, o)
    local m = s.m * o.b + g * (1 - o.b)
    return p - m / (m:abs() + 1e-3) * o.lr, { m = m }
  end,
})
-- Rows have their own scale: not elementwise, so pieces of tensors do not suffice.
local rows = optim.define("rows", {
  options = { lr = 0.01 },
  update = function(p, g, s, o)
    local scale = #g.shape == 2 and g:sumsq(-1, { keep = true }) or g:sumsq()
    return p - g / ((scale + 1e-6):sqrt()) * o.lr, {}
  end,
})
-- The whole tensor's norm: a scalar, which all ranks can have.
local lars = optim.define("lars", {
  options = { lr = 0.01 },
  update = function(p, g, s, o)
    return p - g * ((p:sumsq() + 1e-3) / (g:sumsq() + 1e-6)):sqrt() * o.lr, {}
  end,
})
-- Data parallelism as a script may define it.
local own = strategy.define {
  name = "own", class = "exact", options = { bucket = 5000 },
  provides = "shares of the batch", conflicts = "shares of the batch",
  transform = function(draft, o)
    draft:axis "data"
    for _, field in ipairs(draft:values "batch") do draft:place(field, "data", 1) end
    for _, gradient in ipairs(draft:values "grad") do draft:reduce(gradient, "data", o.bucket) end
  end,
  predict = function(q) return (q.op == "all_gather" and strategy.traffic.pieces or strategy.traffic.sum)(q) end,
}
local optimizers = {
  rows = function() return rows {} end,
  lars = function() return lars {} end,
  sgd = function() return optim.sgd { lr = 0.1 } end,
  adagrad = function() return optim.adagrad { lr = 0.02 } end,
  adamw = function() return optim.adamw { lr = optim.cosine { peak = 3e-3, warmup = 3, steps = 12 }, decay = 0.1 } end,
  lua = function() return sign {} end,
}

local gpt = args.model == "gpt"
local model = gpt and GPT() or MLP()
-- On what is made of several parameters of the MLP.
local function penalty()
  local made = model.d.weight:matmul(model.c.weight):matmul(model.b.weight)
  return made:sumsq() * 1e-3 + (model.a.bias * model.b.weight:sum(1)):sum() * 1e-2
end
local run = orrery.compile(function(b)
  local loss = nn.cross_entropy(model(b.x), b.y)
  return args.penalty and loss + penalty() or loss
end, {
  params = model, optimizer = optimizers[args.optimizer](), clip = 0.5, microbatches = args.microbatches,
  strategy = STACK, numerics = args.numerics,
})
if args.load ~= "" then run:load(args.load) end

-- Every step has a batch of its own; the last ones are ragged.
local function batch_of(step)
  local x, y, rows = {}, {}, step > 8 and args.batch - 3 or args.batch
  local skip = math.max(args.half - 1, 0) * rows  -- one of two halves, for a rank that trains alone
  for i = 1, rows do
    local at = i + skip
    x[i], y[i] = {}, gpt and {} or (step * 7 + at * 5) % 96
    for j = 1, 16 do
      local k = (step * 31 + at * 17 + j * (at + 3)) % 96
      x[i][j] = gpt and k or k / 48 - 1
      if gpt then y[i][j] = (k * 5 + 7) % 96 end
    end
  end
  return { x = orrery.tensor(x, gpt and "i32" or "f32"), y = orrery.tensor(y, "i32") }
end

local last = args.stop > 0 and args.stop or args.steps
for step = run.steps + 1, last do
  local result = run:step(batch_of(step))
  orrery.log("step %d loss %.17g norm %.17g", step, result:mean(), result:get("grad_norm"))
end
local used = run:counters()
if used.predicted_bytes_sent ~= used.bytes_sent then
  error(("rank %d sent %d bytes, predicted were %d"):format(orrery.world.rank, used.bytes_sent, used.predicted_bytes_sent))
end
if used.planned_bytes_copied ~= used.bytes_copied then
  error(("rank %d copied %d bytes between tiers, planned were %d"):format(orrery.world.rank, used.bytes_copied, used.planned_bytes_copied))
end
if args.eval then
  orrery.log("eval %.17g", run:eval(batch_of(99)):mean())
  local outside = orrery.func(function(x) return model(x):sum() end)  -- of whole parameters, wherever they are
  orrery.log("outside %.17g", outside(batch_of(99).x):item())
end
if args.save ~= "" then run:save(args.save) end
orrery.log("digest %s", orrery.digest(model))
