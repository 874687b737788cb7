-- SPDX-License-Identifier: Apache-2.0
--
-- Attention whose keys and values have fewer columns than strategy.tensor has chunks, behind an embedding that is cut:
-- some chunks would have nothing of them.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { tensor = 1, chunks = 0 }
orrery.seed(3)

local Attention = nn.module("Attention", function(m)
  m.tok, m.qkv, m.proj = nn.embedding(5, 8), nn.linear(8, { 4, 2, 2 }), nn.linear(4, 8)
  return function(ids)
    local q, k, v = m.qkv(m.tok(ids))
    return m.proj(nn.attention(q, k, v, { heads = 2, kv_heads = 1, causal = true }))
  end
end)
local model = Attention()
local run = orrery.compile(function(b) return model(b.x):tanh():sum { 2, 3 }:mean() end, {
  params = model, optimizer = optim.sgd { lr = 0.1 }, microbatches = 2,
  strategy = strategy.tensor { size = args.tensor, chunks = args.chunks },
})
local ids = orrery.tensor({ { 0, 4, 2, 1 }, { 3, 3, 1, 0 } }, "i32")
for _ = 1, 3 do
  local result = run:step { x = ids }
  orrery.log("%.4f %.4f", result:mean(), result:get "grad_norm")
end
