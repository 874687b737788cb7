-- SPDX-License-Identifier: Apache-2.0
--
-- The smallest model that every strategy has something to do with, attention in every other block, trained
-- for four steps under the stack that the caller puts where STACK stands; losses and norms in full, and a digest.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
orrery.seed(5)

local Attention = nn.module("Attention", function(m)
  m.norm, m.drop = nn.layernorm(32), nn.dropout(0.1)
  m.qkv, m.proj = nn.linear(32, { 32, 32, 32 }), nn.linear(32, 32)
  return function(x)
    local q, k, v = m.qkv(m.norm(x))
    return x + m.drop(m.proj(nn.attention(q, k, v, { heads = 2, causal = true, dropout = 0.1 })))
  end
end)

local Mlp = nn.module("Mlp", function(m)
  m.mlp = nn.sequential { nn.linear(32, 64), nn.gelu, nn.linear(64, 32) }
  return function(x) return x + m.mlp(x) end
end)

local GPT = nn.module("GPT", function(m)
  m.tok, m.blocks = nn.embedding(24, 32), nn.sequential { Attention(), Mlp(), Attention(), Mlp() }
  m.head = nn.linear(32, 24, { bias = false, tie = m.tok.weight })
  return function(ids) return m.head(m.blocks(m.tok(ids))) end
end)

-- Data parallelism as a script may define it.
local own = strategy.define {
  name = "own", class = "exact", options = { size = 0 },
  provides = "shares of the batch", conflicts = "shares of the batch",
  transform = function(draft, o)
    draft:axis("data", o.size)
    for _, field in ipairs(draft:values "batch") do draft:place(field, "data", 1) end
    for _, gradient in ipairs(draft:values "grad") do draft:reduce(gradient, "data") end
  end,
  predict = strategy.traffic.sum,
}

local model = GPT()
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
  params = model, optimizer = optim.adamw { lr = 0.01, decay = 0.1 }, clip = 0.5, microbatches = 4,
  strategy = STACK,
})
for step = 1, 4 do
  local x, y = {}, {}
  for i = 1, step > 3 and 7 or 8 do  -- the last batch is ragged
    x[i], y[i] = {}, {}
    for j = 1, 4 do
      x[i][j] = (step * 31 + i * 17 + j * (i + 3)) % 24
      y[i][j] = (x[i][j] * 5 + 7) % 24
    end
  end
  local result = run:step { x = orrery.tensor(x, "i32"), y = orrery.tensor(y, "i32") }
  orrery.log("step %d loss %.17g norm %.17g", step, result:mean(), result:get("grad_norm"))
end
orrery.log("digest %s", orrery.digest(model))
