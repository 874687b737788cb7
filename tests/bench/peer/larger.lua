-- SPDX-License-Identifier: Apache-2.0
--
-- The benchmark's own models, whose PyTorch twins are in larger.py.
local orrery = require "orrery"
local nn = orrery.nn
local M = {}

local function conv(inputs, outputs, size, stride)
  return nn.conv2d(inputs, outputs, size, { stride = stride, padding = size // 2, bias = false })
end

local Residual = nn.module("Residual", function(m, inputs, outputs, stride)
  m.conv1, m.norm1 = conv(inputs, outputs, 3, stride), nn.batchnorm(outputs)
  m.conv2, m.norm2 = conv(outputs, outputs, 3, 1), nn.batchnorm(outputs)
  local shortcut
  if stride > 1 or inputs ~= outputs then
    shortcut = nn.sequential { conv(inputs, outputs, 1, stride), nn.batchnorm(outputs) }
    m.shortcut = shortcut
  end
  return function(x)
    local y = m.norm2(m.conv2(nn.relu(m.norm1(m.conv1(x)))))
    return nn.relu(y + (shortcut and shortcut(x) or x))
  end
end)

-- c: width, blocks, classes. ResNet-18 for images of 32 by 32 has 64, 2 and 10.
function M.resnet(c)
  local parts, inputs = { conv(3, c.width, 3, 1), nn.batchnorm(c.width), nn.relu }, c.width
  for stage = 0, 3 do
    for block = 1, c.blocks do
      parts[#parts + 1] = Residual(inputs, c.width << stage, stage > 0 and block == 1 and 2 or 1)
      inputs = c.width << stage
    end
  end
  for _, part in ipairs { nn.adaptive_avg_pool2d(1), nn.flatten, nn.linear(inputs, c.classes) } do
    parts[#parts + 1] = part
  end
  return nn.sequential(parts)
end

-- c: vocab, width, hidden, layers.
M.lstm = nn.module("Lstm", function(m, c)
  m.tok = nn.embedding(c.vocab, c.width)
  m.rnn = nn.lstm(c.width, c.hidden, { layers = c.layers })
  m.head = nn.linear(c.hidden, c.vocab)
  return function(ids) return m.head((m.rnn(m.tok(ids)))) end
end)

local Encoder = nn.module("Encoder", function(m, c)
  m.qkv, m.proj = nn.linear(c.dim, { c.dim, c.dim, c.dim }), nn.linear(c.dim, c.dim)
  m.mlp = nn.sequential { nn.linear(c.dim, 4 * c.dim), nn.gelu_exact, nn.linear(4 * c.dim, c.dim) }
  m.ln1, m.ln2 = nn.layernorm(c.dim, { eps = 1e-12 }), nn.layernorm(c.dim, { eps = 1e-12 })
  return function(x, seen)
    local q, k, v = m.qkv(x)
    x = m.ln1(x + m.proj(nn.attention(q, k, v, { heads = c.heads, mask = seen })))
    return m.ln2(x + m.mlp(x))
  end
end)

-- c: vocab, positions, dim, heads, layers. Id 0 is padding, which nobody sees.
M.bert = nn.module("Bert", function(m, c)
  m.tok, m.pos = nn.embedding(c.vocab, c.dim), nn.embedding(c.positions, c.dim)
  m.norm, m.blocks = nn.layernorm(c.dim, { eps = 1e-12 }), {}
  for i = 1, c.layers do m.blocks[i] = Encoder(c) end
  m.dense, m.ln = nn.linear(c.dim, c.dim), nn.layernorm(c.dim, { eps = 1e-12 })
  m.decode = nn.linear(c.dim, c.vocab, { tie = m.tok.weight })
  return function(ids)
    local batch, time = table.unpack(ids.shape)
    local seen = ids:ne(0):reshape(batch, 1, 1, time)
    local x = m.norm(m.tok(ids) + m.pos(orrery.iota(time)))
    for _, block in ipairs(m.blocks) do x = block(x, seen) end
    return m.decode(m.ln(nn.gelu_exact(m.dense(x))))
  end
end)

return M
