-- SPDX-License-Identifier: Apache-2.0
--
-- LLaMA: RMSNorm, rotary positions, several heads of queries for each of keys and values, SwiGLU. Called with ids it
-- gives logits; with a cache too, `ids` are those from place `cache.at` on, whose keys and values the cache takes.
local orrery = require "orrery"
local nn = orrery.nn

local function linear(inputs, outputs) return nn.linear(inputs, outputs, { bias = false, init = nn.init.normal(0.02) }) end

local Block = nn.module("Block", function(m, c)
  local kv = c.dim // c.heads * c.kv_heads
  m.norm1, m.norm2 = nn.rmsnorm(c.dim), nn.rmsnorm(c.dim)
  m.q, m.k, m.v, m.o = linear(c.dim, c.dim), linear(c.dim, kv), linear(c.dim, kv), linear(c.dim, c.dim)
  m.gate, m.up, m.down = linear(c.dim, c.hidden), linear(c.dim, c.hidden), linear(c.hidden, c.dim)
  return function(x, kept, at)
    local h = m.norm1(x)
    local q = nn.rotary(m.q(h), { heads = c.heads, offset = at or 0 })
    local k, v = nn.rotary(m.k(h), { heads = c.kv_heads, offset = at or 0 }), m.v(h)
    if kept then
      k, v = kept.k:update_slice(k, 2, at), kept.v:update_slice(v, 2, at)
      kept.k:update(k)
      kept.v:update(v)
    end
    local how = { heads = c.heads, kv_heads = c.kv_heads, causal = true, offset = at }
    x = x + m.o(nn.attention(q, k, v, how))
    h = m.norm2(x)
    return x + m.down(m.gate(h):silu() * m.up(h))
  end
end)

return nn.module("Llama", function(m, c)
  m.tok, m.blocks = nn.embedding(c.vocab, c.dim), {}
  for i = 1, c.layers do m.blocks[i] = Block(c) end
  m.norm, m.head = nn.rmsnorm(c.dim), linear(c.dim, c.vocab)
  return function(ids, cache)
    local x = m.tok(ids)
    for i = 1, c.layers do
      if cache then x = m.blocks[i](x, cache[i], cache.at) else x = m.blocks[i](x) end
    end
    return m.head(m.norm(x))
  end
end)
