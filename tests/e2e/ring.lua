-- SPDX-License-Identifier: Apache-2.0
--
-- A transformer whose optimizer puts the gradient in the parameter's place, so that one step prints every gradient.
-- With `cross` its queries are fewer than the keys, as in a decoder that reads an encoder.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { causal = true, cross = false, ctx = 24, batch = 4, optimizer = "gradient", steps = 1 }
orrery.seed(5)

local Block = nn.module("Block", function(m)
  m.ln1, m.ln2 = nn.layernorm(16), nn.layernorm(16)
  m.q, m.kv, m.proj = nn.linear(16, 16), nn.linear(16, { 16, 16 }), nn.linear(16, 16)
  m.mlp = nn.sequential { nn.linear(16, 32), nn.gelu, nn.linear(32, 16) }
  return function(x, memory)
    local q, k, v = m.q(m.ln1(x)), m.kv(memory or m.ln1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = 4, causal = args.causal }))
    return x + m.mlp(m.ln2(x))
  end
end)

local Model = nn.module("Model", function(m)
  m.tok, m.pos = nn.embedding(32, 16), nn.embedding(args.ctx, 16)
  m.one, m.two, m.head = Block(), Block(), nn.linear(16, 32)
  return function(b)
    local x = m.tok(b.x) + m.pos(orrery.iota(args.ctx))
    x = args.cross and m.two(m.tok(b.z), m.one(x)) or m.two(m.one(x))
    return nn.cross_entropy(m.head(x), b.y)
  end
end)

local gradient = optim.define("gradient", { options = { lr = 1 }, update = function(_, g) return g, {} end })
local model = Model()
local run = orrery.compile(function(b) return model(b) end, {
  params = model, optimizer = args.optimizer == "gradient" and gradient {} or optim.sgd { lr = 0.1 }, microbatches = 4,
  strategy = STACK,
})

local function ids(places, step, stride)
  local rows = {}
  for i = 1, args.batch do
    rows[i] = {}
    for j = 1, places do rows[i][j] = (i * 11 + j * (stride + i) + step * 7) % 32 end
  end
  return orrery.tensor(rows, "i32")
end

for step = 1, args.steps do
  local batch = { x = ids(args.ctx, step, 5), y = ids(args.cross and args.ctx // 2 or args.ctx, step, 3) }
  if args.cross then batch.z = ids(args.ctx // 2, step, 13) end
  orrery.log("step %d loss %.17g", step, run:step(batch):mean())
end

local function flat(x, into)
  for _, e in ipairs(x) do
    if type(e) == "table" then flat(e, into) else into[#into + 1] = ("%.9g"):format(e) end
  end
  return into
end
local used = run:counters()
if used.predicted_bytes_sent ~= used.bytes_sent or used.planned_arena_bytes ~= used.arena_bytes then
  error(("rank %d sent %d bytes and took %d, planned were %d and %d"):format(orrery.world.rank, used.bytes_sent,
    used.arena_bytes, used.predicted_bytes_sent, used.planned_arena_bytes))
end
for _, p in ipairs(orrery.parameters(model)) do
  orrery.log("weights %s %s", p.name, table.concat(flat(p:read():tolist(), {}), " "))
end
orrery.log("digest %s", orrery.digest(model))
