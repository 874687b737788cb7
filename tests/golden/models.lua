-- SPDX-License-Identifier: Apache-2.0
--
-- The models of the golden runs and of the benchmark. models.py holds their PyTorch twins.
local orrery = require "orrery"
local nn = orrery.nn
local M = {}

local Block = nn.module("Block", function(m, c)
  m.ln1, m.ln2 = nn.layernorm(c.dim), nn.layernorm(c.dim)
  m.qkv, m.proj = nn.linear(c.dim, { c.dim, c.dim, c.dim }), nn.linear(c.dim, c.dim)
  m.mlp = nn.sequential { nn.linear(c.dim, 4 * c.dim), nn.gelu, nn.linear(4 * c.dim, c.dim) }
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = c.heads, causal = true }))
    return x + m.mlp(m.ln2(x))
  end
end)

-- c: vocab, positions, dim, heads, layers. The head shares the token table.
M.gpt = nn.module("GPT", function(m, c)
  m.tok, m.pos = nn.embedding(c.vocab, c.dim), nn.embedding(c.positions, c.dim)
  m.blocks = nn.sequential(c.layers, function() return Block(c) end)
  m.norm = nn.layernorm(c.dim)
  m.head = nn.linear(c.dim, c.vocab, { bias = false, tie = m.tok.weight })
  return function(ids)
    return m.head(m.norm(m.blocks(m.tok(ids) + m.pos(orrery.iota(ids.shape[-1])))))
  end
end)

-- Linear layers of these widths, {784, 512, 10}, with relu between them.
function M.mlp(widths)
  local parts = {}
  for i = 2, #widths do
    parts[#parts + 1] = nn.linear(widths[i - 1], widths[i])
    if i < #widths then parts[#parts + 1] = nn.relu end
  end
  return nn.sequential(parts)
end

-- For images [batch, 3, 8, 8] of four classes.
function M.cnn()
  return nn.sequential {
    nn.conv2d(3, 8, 3, { padding = 1 }), nn.batchnorm(8), nn.relu, nn.max_pool2d(3, { stride = 2, padding = 1 }),
    nn.conv2d(8, 12, 3, { stride = 2, padding = 1 }), nn.batchnorm(12), nn.relu, nn.avg_pool2d(2),
    nn.flatten, nn.linear(12, 4),
  }
end

function M.depthwise()
  return nn.sequential {
    nn.conv2d(3, 8, 3), nn.relu, nn.conv2d(8, 8, 3, { padding = 1, groups = 8 }), nn.batchnorm(8), nn.relu,
    nn.conv2d(8, 16, 1), nn.groupnorm(4, 16), nn.relu, nn.adaptive_avg_pool2d(1), nn.flatten,
    nn.linear(16, 4),
  }
end

-- Parameters whose names match these are not decayed.
M.undecayed = { "*.bias", "*ln*", "*norm*" }

return M
