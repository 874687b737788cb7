-- SPDX-License-Identifier: Apache-2.0
--
-- Layers without biases whose sequences are cut over `context`, and over `tensor` if `sequence`.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local a = orrery.args { layers = 2, sequence = true, context = 4, kind = "gathered" }
local batch, time, dim, heads, vocab = 2, 256, 64, 8, 128

local function linear(n, m) return nn.linear(n, m, { bias = false }) end

local Block = nn.module("Block", function(m)
  m.norm1, m.norm2 = nn.rmsnorm(dim), nn.rmsnorm(dim)
  m.qkv, m.proj = linear(dim, { dim, dim, dim }), linear(dim, dim)
  m.mlp = nn.sequential { linear(dim, 4 * dim), nn.gelu, linear(4 * dim, dim) }
  return function(x)
    local q, k, v = m.qkv(m.norm1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = heads, causal = true }))
    return x + m.mlp(m.norm2(x))
  end
end)

local model = nn.sequential {
  nn.embedding(vocab, dim), nn.sequential(a.layers, function() return Block() end), nn.rmsnorm(dim), linear(dim, vocab),
}
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
  params = model, optimizer = optim.sgd { lr = 0.1 },
  strategy = { strategy.context { size = a.context, kind = a.kind }, strategy.tensor { sequence = a.sequence } },
})
local ids = orrery.func(function() return orrery.zeros({ batch, time }, "i32") end)()
run:step { x = ids, y = ids }
