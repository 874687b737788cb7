-- SPDX-License-Identifier: Apache-2.0
--
-- A small GPT whose feed-forward layers are mixtures of experts, which the ranks share.
--
--   orrery run -n 2 examples/switch.lua
--   orrery run -n 4 examples/switch.lua size=2 top=2          # two ranks share the experts, twice
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  data = "", steps = 30, batch = 8, ctx = 64, dim = 64, heads = 4, layers = 2, experts = 8, top = 1, capacity = 1.25,
  group = 16, size = 0, chunks = 0,
}
orrery.seed(1)

local Block = nn.module("Block", function(m, c)
  m.ln1, m.ln2 = nn.layernorm(c.dim), nn.layernorm(c.dim)
  m.qkv, m.proj = nn.linear(c.dim, { c.dim, c.dim, c.dim }), nn.linear(c.dim, c.dim)
  m.experts = nn.switch(c.dim, { experts = c.experts, top = c.top, capacity = c.capacity, group = c.group })
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = c.heads, causal = true }))
    local y, aux = m.experts(m.ln2(x))
    return x + y, aux
  end
end)

local GPT = nn.module("GPT", function(m, c)
  m.tok, m.pos = nn.embedding(c.vocab, c.dim), nn.embedding(c.ctx, c.dim)
  for i = 1, c.layers do m["block" .. i] = Block(c) end
  m.norm = nn.layernorm(c.dim)
  m.head = nn.linear(c.dim, c.vocab, { bias = false, tie = m.tok.weight })
  return function(ids)
    local x, loss, dropped = m.tok(ids) + m.pos(orrery.iota(ids.shape[-1])), 0, 0
    for i = 1, c.layers do
      local aux
      x, aux = m["block" .. i](x)
      loss, dropped = aux.loss + loss, aux.dropped + dropped
    end
    return m.head(m.norm(x)), loss, dropped
  end
end)

local text = orrery.data.text(args.data == "" and orrery.sources() or args.data, { ctx = args.ctx })
args.vocab = text.vocab
local model = GPT(args)
local run = orrery.compile(function(b)
  local logits, loss, dropped = model(b.x)
  return nn.cross_entropy(logits, b.y) + loss, { dropped = dropped }
end, {
  params = model, optimizer = optim.adamw { lr = 1e-3 },
  strategy = { strategy.expert { size = args.size, chunks = args.chunks }, strategy.data {} },
})
run:fit { data = text, size = args.batch, steps = args.steps, log = 10 }
orrery.log("digest %s", orrery.digest(model))
