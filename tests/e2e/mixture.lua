-- SPDX-License-Identifier: Apache-2.0
--
-- A small decoder whose experts a script writes by itself, as Qwen3's are: every token has its `top` of the experts,
-- with weights that sum to 1; all experts compute all tokens. Trained under STACK; prints losses and a digest.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { batch = 8, time = 4, dim = 8, experts = 8, top = 3, flat = true }
orrery.seed(3)

local Experts = nn.module("Experts", function(m, dim)
  m.router = nn.linear(dim, args.experts, { bias = false })
  m.up = nn.parameter({ args.experts, dim, 2 * dim }, { init = nn.init.normal(0.2) })
  m.down = nn.parameter({ args.experts, 2 * dim, dim }, { init = nn.init.normal(0.2) })
  return function(x)
    local b, t, e = x.shape[1], x.shape[2], args.experts
    local value, index = m.router(x):softmax():topk(args.top)
    value = value / value:sum({ -1 }, { keep = true })
    local weight = (index:one_hot(e) * value:reshape(b, t, args.top, 1)):sum(3)
    if args.flat then
      local y = x:reshape(1, b * t, dim):broadcast(e, b * t, dim):matmul(m.up):silu():matmul(m.down)
      return (y * weight:reshape(b * t, e):transpose():reshape(e, b * t, 1)):sum(1):reshape(b, t, dim)
    end
    local tokens = x:reshape(1, b, t, dim):broadcast(e, b, t, dim):reshape(e, b * t, dim)
    local y = tokens:matmul(m.up):silu():matmul(m.down):reshape(e, b, t, dim)
    return (y * weight:permute(3, 1, 2):reshape(e, b, t, 1)):sum(1)
  end
end)

local Block = nn.module("Block", function(m, dim)
  m.norm1, m.norm2 = nn.rmsnorm(dim), nn.rmsnorm(dim)
  m.qkv, m.proj = nn.linear(dim, { dim, dim, dim }, { bias = false }), nn.linear(dim, dim, { bias = false })
  m.experts = Experts(dim)
  return function(x)
    local q, k, v = m.qkv(m.norm1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = 2, causal = true }))
    return x + m.experts(m.norm2(x))
  end
end)

local Decoder = nn.module("Decoder", function(m, dim)
  m.tok = nn.embedding(11, dim)
  m.blocks = nn.sequential(2, function() return Block(dim) end)
  m.head = nn.linear(dim, 11)
  return function(ids) return m.head(m.blocks(m.tok(ids))) end
end)

local model = Decoder(args.dim)
local x, y = {}, {}
for row = 1, args.batch do
  x[row], y[row] = {}, {}
  for t = 1, args.time do
    x[row][t], y[row][t] = (row * 7 + t * t * 3) % 11, (row * 7 + (t + 1) * (t + 1) * 3) % 11
  end
end
local batch = { x = orrery.tensor(x, "i32"), y = orrery.tensor(y, "i32") }
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end,
  { params = model, optimizer = optim.adam { lr = 0.01 }, microbatches = 4, strategy = STACK })
for _ = 1, 3 do orrery.log("%.9g", run:step(batch):mean()) end
orrery.log("digest %s", orrery.digest(model))
