-- SPDX-License-Identifier: Apache-2.0
--
-- A GPT with tied embeddings and dropout: the model that the strategies' examples train.
local orrery = require "orrery"
local nn = orrery.nn

local Block = nn.module("Block", function(m, c)
  m.ln1, m.ln2 = nn.layernorm(c.dim), nn.layernorm(c.dim)
  m.qkv = nn.linear(c.dim, { c.dim, c.dim, c.dim })
  m.proj = nn.linear(c.dim, c.dim)
  m.mlp = nn.sequential { nn.linear(c.dim, 4 * c.dim), nn.gelu, nn.linear(4 * c.dim, c.dim) }
  m.drop1, m.drop2 = nn.dropout(c.dropout), nn.dropout(c.dropout)
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.drop1(m.proj(nn.attention(q, k, v, { heads = c.heads, causal = true })))
    return x + m.drop2(m.mlp(m.ln2(x)))
  end
end)

return nn.module("GPT", function(m, c)
  m.tok, m.pos = nn.embedding(c.vocab, c.dim), nn.embedding(c.ctx, c.dim)
  m.drop = nn.dropout(c.dropout)
  m.blocks = nn.sequential(c.layers, function() return Block(c) end)
  m.norm = nn.layernorm(c.dim)
  m.head = nn.linear(c.dim, c.vocab, { bias = false, tie = m.tok.weight })
  return function(ids)
    local x = m.tok(ids) + m.pos(orrery.iota(ids.shape[-1]))
    return m.head(m.norm(m.blocks(m.drop(x))))
  end
end)
