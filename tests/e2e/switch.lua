-- SPDX-License-Identifier: Apache-2.0
--
-- A small GPT whose second block is a mixture of experts, trained under the stack that the caller puts where STACK
-- stands; prints losses, norms and dropped tokens in full, and a digest. Fails on a rank that sends other bytes than
-- planned.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { steps = 5, batch = 8, microbatches = 4, experts = 8, top = 1, group = 4, capacity = 1.0,
  optimizer = "adamw", stop = 0, load = "", save = "" }
orrery.seed(3)

local Block = nn.module("Block", function(m, dim, switch)
  m.ln1, m.ln2 = nn.layernorm(dim), nn.layernorm(dim)
  m.qkv, m.proj = nn.linear(dim, { dim, dim, dim }), nn.linear(dim, dim)
  if switch then
    m.experts = nn.switch(dim, { experts = args.experts, top = args.top, group = args.group, capacity = args.capacity, z = 0.001 })
  else
    m.mlp = nn.sequential { nn.linear(dim, 4 * dim), nn.gelu, nn.linear(4 * dim, dim) }
  end
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = 4, causal = true }))
    if not switch then return x + m.mlp(m.ln2(x)) end
    local y, aux = m.experts(m.ln2(x))
    return x + y, aux
  end
end)

local GPT = nn.module("GPT", function(m)
  m.tok, m.pos = nn.embedding(96, 32), nn.embedding(16, 32)
  m.first, m.second, m.third = Block(32), Block(32, true), Block(32)
  m.norm = nn.layernorm(32)
  m.head = nn.linear(32, 96, { bias = false, tie = m.tok.weight })
  return function(ids)
    local x, aux = m.second(m.first(m.tok(ids) + m.pos(orrery.iota(ids.shape[-1]))))
    return m.head(m.norm(m.third(x))), aux
  end
end)

-- Two norms of every tensor.
local lars = optim.define("lars", {
  options = { lr = 0.01 },
  update = function(p, g, s, o) return p - g * ((p:sumsq() + 1e-3) / (g:sumsq() + 1e-6)):sqrt() * o.lr, {} end,
})

local model = GPT()
local run = orrery.compile(function(b)
  local logits, aux = model(b.x)
  return nn.cross_entropy(logits, b.y) + aux.loss, { dropped = aux.dropped }
end, {
  params = model, optimizer = args.optimizer == "lars" and lars {} or optim.adamw { lr = 0.01 }, clip = 0.5, microbatches = args.microbatches,
  strategy = STACK,
})

if args.load ~= "" then run:load(args.load) end
for step = run.steps + 1, args.stop > 0 and args.stop or args.steps do
  local x, y = {}, {}
  for i = 1, args.batch do
    x[i], y[i] = {}, {}
    for j = 1, 16 do
      x[i][j] = (step * 31 + i * 17 + j * (i + 3)) % 96
      y[i][j] = (x[i][j] * 5 + 7) % 96
    end
  end
  local result = run:step { x = orrery.tensor(x, "i32"), y = orrery.tensor(y, "i32") }
  orrery.log("step %d loss %.17g norm %.17g dropped %g", step, result:mean(), result:get("grad_norm"),
    result:get("dropped"))
end
local used = run:counters()
if used.predicted_bytes_sent ~= used.bytes_sent then
  error(("rank %d sent %d bytes, predicted were %d"):format(orrery.world.rank, used.bytes_sent, used.predicted_bytes_sent))
end
if args.save ~= "" then run:save(args.save) end
orrery.log("digest %s", orrery.digest(model))
