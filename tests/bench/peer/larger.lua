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

-- The layers, and behind them what tells classes apart by the mean over all places.
local function classifier(parts, inputs, classes)
  for _, part in ipairs { nn.adaptive_avg_pool2d(1), nn.flatten, nn.linear(inputs, classes) } do
    parts[#parts + 1] = part
  end
  return nn.sequential(parts)
end

-- c: width, blocks, classes. ResNet-18 for images of 32 by 32 has 64, 2 and 10.
function M.resnet(c)
  local parts, inputs = { conv(3, c.width, 3, 1), nn.batchnorm(c.width), nn.relu }, c.width
  for stage = 0, 3 do
    for block = 1, c.blocks do
      parts[#parts + 1] = Residual(inputs, c.width << stage, stage > 0 and block == 1 and 2 or 1)
      inputs = c.width << stage
    end
  end
  return classifier(parts, inputs, c.classes)
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

local Bottleneck = nn.module("Bottleneck", function(m, inputs, width, stride)
  local outputs = 4 * width
  m.conv1, m.norm1 = conv(inputs, width, 1, 1), nn.batchnorm(width)
  m.conv2, m.norm2 = conv(width, width, 3, stride), nn.batchnorm(width)
  m.conv3, m.norm3 = conv(width, outputs, 1, 1), nn.batchnorm(outputs)
  local shortcut
  if inputs ~= outputs then
    shortcut = nn.sequential { conv(inputs, outputs, 1, stride), nn.batchnorm(outputs) }
    m.shortcut = shortcut
  end
  return function(x)
    local y = nn.relu(m.norm2(m.conv2(nn.relu(m.norm1(m.conv1(x))))))
    return nn.relu(m.norm3(m.conv3(y)) + (shortcut and shortcut(x) or x))
  end
end)

-- c: width, classes. ResNet-50 has 64 and 1,000.
function M.resnet50(c)
  local parts = { conv(3, c.width, 7, 2), nn.batchnorm(c.width), nn.relu, nn.max_pool2d(3, { stride = 2, padding = 1 }) }
  local inputs = c.width
  for stage, blocks in ipairs { 3, 4, 6, 3 } do
    for block = 1, blocks do
      local width = c.width << (stage - 1)
      parts[#parts + 1] = Bottleneck(inputs, width, stage > 1 and block == 1 and 2 or 1)
      inputs = 4 * width
    end
  end
  return classifier(parts, inputs, c.classes)
end

-- Each channel by itself, then all channels of each place.
local function separable(parts, inputs, outputs, stride)
  for _, part in ipairs {
    nn.conv2d(inputs, inputs, 3, { stride = stride, padding = 1, groups = inputs, bias = false }), nn.batchnorm(inputs),
    nn.relu, conv(inputs, outputs, 1, 1), nn.batchnorm(outputs), nn.relu,
  } do parts[#parts + 1] = part end
end

-- c: width, classes. Blocks of MobileNet, for images of 32 by 32.
function M.mobilenet(c)
  local parts, inputs = { conv(3, c.width, 3, 1), nn.batchnorm(c.width), nn.relu }, c.width
  for i, outputs in ipairs { 2 * c.width, 2 * c.width, 4 * c.width, 4 * c.width, 8 * c.width } do
    separable(parts, inputs, outputs, i % 2 == 0 and 2 or 1)
    inputs = outputs
  end
  return classifier(parts, inputs, c.classes)
end

local NextBlock = nn.module("NextBlock", function(m, width)
  m.conv, m.norm = nn.conv2d(width, width, 7, { padding = 3, groups = width }), nn.layernorm(width, { eps = 1e-6 })
  m.mlp = nn.sequential { nn.linear(width, 4 * width), nn.gelu_exact, nn.linear(4 * width, width) }
  return function(x)
    return x + m.mlp(m.norm(m.conv(x):permute { 1, 3, 4, 2 })):permute { 1, 4, 2, 3 }
  end
end)

-- c: width, blocks, classes. Two stages of ConvNeXt, for images of 32 by 32.
function M.convnext(c)
  local parts, inputs = {}, 3
  for stage = 0, 1 do
    local width = c.width << stage
    parts[#parts + 1] = nn.conv2d(inputs, width, 2, { stride = 2 })
    for _ = 1, c.blocks do parts[#parts + 1] = NextBlock(width) end
    inputs = width
  end
  return classifier(parts, inputs, c.classes)
end

-- c: vocab, dim, heads, kv_heads, hidden, layers.
function M.llama(c) return require "models.llama"(c) end

local SwitchBlock = nn.module("SwitchBlock", function(m, c)
  m.ln1, m.ln2 = nn.layernorm(c.dim), nn.layernorm(c.dim)
  m.qkv, m.proj = nn.linear(c.dim, { c.dim, c.dim, c.dim }), nn.linear(c.dim, c.dim)
  m.mlp = nn.switch(c.dim, { experts = c.experts })
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = c.heads, causal = true }))
    local y, aux = m.mlp(m.ln2(x))
    return x + y, aux.loss
  end
end)

-- c: vocab, positions, dim, heads, layers, experts. Gives logits, and the loss of its routers.
M.switch = nn.module("SwitchGPT", function(m, c)
  m.tok, m.pos, m.blocks = nn.embedding(c.vocab, c.dim), nn.embedding(c.positions, c.dim), {}
  for i = 1, c.layers do m.blocks[i] = SwitchBlock(c) end
  m.norm = nn.layernorm(c.dim)
  m.head = nn.linear(c.dim, c.vocab, { bias = false, tie = m.tok.weight })
  return function(ids)
    local x, loss = m.tok(ids) + m.pos(orrery.iota(ids.shape[-1])), 0
    for _, block in ipairs(m.blocks) do
      local more
      x, more = block(x)
      loss = more + loss
    end
    return m.head(m.norm(x)), loss
  end
end)

return M
