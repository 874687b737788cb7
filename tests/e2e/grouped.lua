-- SPDX-License-Identifier: Apache-2.0
--
-- Layers as LLaMA's, in which several heads of queries read one of keys and values, perhaps within a window, under the
-- stack that the caller puts where STACK stands. Prints losses, norms and a digest; fails on a rank that sends other
-- bytes than planned.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { heads = 8, kv_heads = 2, window = 0, causal = true, ctx = 32, dim = 32, layers = 2, batch = 8,
  microbatches = 4, drop = 0, steps = 4 }
orrery.seed(3)

local Block = nn.module("Block", function(m)
  local keys = args.dim // args.heads * args.kv_heads
  m.ln1, m.ln2 = nn.rmsnorm(args.dim), nn.rmsnorm(args.dim)
  m.q, m.o = nn.linear(args.dim, args.dim, { bias = false }), nn.linear(args.dim, args.dim, { bias = false })
  m.k, m.v = nn.linear(args.dim, keys, { bias = false }), nn.linear(args.dim, keys, { bias = false })
  m.gate, m.up, m.down = nn.linear(args.dim, 64), nn.linear(args.dim, 64), nn.linear(64, args.dim)
  local how = { heads = args.heads, kv_heads = args.kv_heads, causal = args.causal, dropout = args.drop,
    window = args.window > 0 and args.window or nil }
  return function(x)
    local y = m.ln1(x)
    x = x + m.o(nn.attention(m.q(y), m.k(y), m.v(y), how))
    y = m.ln2(x)
    return x + m.down(nn.silu(m.gate(y)) * m.up(y))
  end
end)

local Model = nn.module("Model", function(m)
  m.tok, m.place = nn.embedding(96, args.dim), nn.embedding(args.ctx, args.dim)
  m.blocks, m.norm = nn.sequential(args.layers, function() return Block() end), nn.rmsnorm(args.dim)
  m.head = nn.linear(args.dim, 96, { bias = false })
  return function(b)
    local x = m.tok(b.x) + m.place(orrery.iota(args.ctx))
    return nn.cross_entropy(m.head(m.norm(m.blocks(x))), b.y)
  end
end)

local model = Model()
local run = orrery.compile(function(b) return model(b) end, {
  params = model, optimizer = optim.adamw { lr = 3e-3 }, clip = 0.5, microbatches = args.microbatches, strategy = STACK,
})
for step = 1, args.steps do
  local x, y = {}, {}
  for i = 1, args.batch do
    x[i], y[i] = {}, {}
    for j = 1, args.ctx do
      x[i][j] = (step * 31 + i * 17 + j * (i + 3)) % 96
      y[i][j] = (x[i][j] * 5 + 7) % 96
    end
  end
  local result = run:step { x = orrery.tensor(x, "i32"), y = orrery.tensor(y, "i32") }
  orrery.log("step %d loss %.17g norm %.17g", step, result:mean(), result:get("grad_norm"))
end
local used = run:counters()
if used.predicted_bytes_sent ~= used.bytes_sent then
  error(("rank %d sent %d bytes, planned were %d"):format(orrery.world.rank, used.bytes_sent, used.predicted_bytes_sent))
end
orrery.log("digest %s", orrery.digest(model))
