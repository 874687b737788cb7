-- SPDX-License-Identifier: Apache-2.0
--
-- Recurrent layers, attention, and others that take more than one tensor, for layers.lua. transformer_cases.py has the
-- same ones.
local x, memory = { 2, 4, 6 }, { { { 2, 3, 6 }, "real" } }
local state, sequence = { { { 3, 4 }, "real" } }, { 2, 3, 5 }

-- A module whose parameters are trained, called in another way.
local function called(make, f)
  return function(nn) return nn.module("called", function(m)
    m.part = make(nn)
    return function(...) return f(m.part, ...) end
  end)() end
end

-- The results of sequences of several lengths, and their last states.
local lengths = { { { 4 }, "given", { 2, 5, 1, 4 } } }
local function packed(make)
  return called(make, function(layer, y, n)
    local all, last = layer(y, { lengths = n })
    local sum = 0
    for i, state in ipairs(type(last) == "table" and { last.h, last.c } or { last }) do sum = sum + state:sum { 2, 3 } * i end
    return all + sum:reshape(4, 1, 1) * 0.5
  end)
end

-- In evaluation, with vectors that numbers of layers.lua are in transformer_cases.py.
local function spectral(nn, layer, options)
  local made = nn.spectral_norm(layer, options)
  for seed, vector in ipairs { made.u, made.v } do
    local values, squares = {}, 0
    for i = 1, vector.shape[1] do
      values[i] = math.sin(2.5 + seed + (i - 1) * 1.7)
      squares = squares + values[i] * values[i]
    end
    for i, value in ipairs(values) do values[i] = value / math.sqrt(squares) end
    vector:write(values)
  end
  return made
end

local cases = {
  { "weight norm", function(nn) return nn.weight_norm(nn.linear(6, 5)) end, { 3, 6 }, { 3, 5 } },
  { "weight norm of columns", function(nn) return nn.weight_norm(nn.linear(6, 5), { dim = 2 }) end, { 3, 6 }, { 3, 5 } },
  { "weight norm of conv", function(nn) return nn.weight_norm(nn.conv2d(2, 3, 2)) end, { 2, 2, 4, 3 }, { 2, 3, 3, 2 } },
  { "spectral norm", function(nn) return spectral(nn, nn.linear(6, 5)) end, { 3, 6 }, { 3, 5 } },
  { "spectral norm of conv", function(nn) return spectral(nn, nn.conv_transpose2d(2, 3, 2), { dim = 2 }) end,
    { 2, 2, 4, 3 }, { 2, 3, 5, 4 } },
  { "layernorm", function(nn) return nn.layernorm(6) end, x, x },
  { "layernorm without bias", function(nn) return nn.layernorm(6, { bias = false }) end, x, x },
  { "layernorm plain", function(nn) return nn.layernorm(6, { affine = false, eps = 0.01 }) end, x, x },
  { "rmsnorm", function(nn) return nn.rmsnorm(6) end, x, x },
  { "rmsnorm plain", function(nn) return nn.rmsnorm(6, { affine = false, eps = 0.01 }) end, x, x },
  { "bilinear", function(nn) return nn.bilinear(4, 3, 5) end, { 2, 3, 4 }, { 2, 3, 5 }, { { { 2, 3, 3 }, "real" } } },
  { "bilinear without bias", function(nn) return nn.bilinear(4, 3, 5, { bias = false }) end, { 6, 4 }, { 6, 5 },
    { { { 6, 3 }, "real" } } },
  { "pixel shuffle", function(nn) return nn.pixel_shuffle(2) end, { 2, 8, 3, 2 }, { 2, 2, 6, 4 } },
  { "upsample of length", function(nn) return nn.upsample(3) end, { 2, 3, 4 }, { 2, 3, 12 } },
  { "upsample nearest", function(nn) return nn.upsample { 2, 3 } end, { 2, 3, 4, 2 }, { 2, 3, 8, 6 } },
  { "upsample linear", function(nn) return nn.upsample(4, { mode = "linear" }) end, { 2, 3, 5 }, { 2, 3, 20 } },
  { "upsample bilinear", function(nn) return nn.upsample({ 2, 3 }, { mode = "bilinear" }) end, { 2, 3, 4, 5 }, { 2, 3, 8, 15 } },
  { "upsample trilinear", function(nn) return nn.upsample(2, { mode = "trilinear" }) end, { 1, 2, 3, 1, 4 }, { 1, 2, 6, 2, 8 } },
  { "rnn", function(nn) return nn.rnn(5, 4, { layers = 2 }) end, sequence, { 2, 3, 4 } },
  { "rnn relu", function(nn) return nn.rnn(5, 4, { act = nn.relu, bidirectional = true, bias = false }) end, sequence,
    { 2, 3, 8 } },
  { "rnn packed", packed(function(nn) return nn.rnn(5, 4, { layers = 2 }) end), { 4, 5, 5 }, { 4, 5, 4 }, lengths },
  { "gru packed", packed(function(nn) return nn.gru(5, 4, { bidirectional = true, layers = 2 }) end), { 4, 5, 5 }, { 4, 5, 8 },
    lengths },
  { "lstm packed", packed(function(nn) return nn.lstm(5, 4, { bidirectional = true, bias = false }) end), { 4, 5, 5 },
    { 4, 5, 8 }, lengths },
  { "gru packed from a state", called(function(nn) return nn.gru(5, 4, { bidirectional = true }) end, function(gru, y, n, s)
    local all, last = gru(y, s, { lengths = n })
    return all + last:reshape(4, 1, 8) * 0.5
  end), { 4, 5, 5 }, { 4, 5, 8 }, { lengths[1], { { 4, 2, 4 }, "real" } } },
  { "rnn cell", function(nn) return nn.rnn_cell(5, 4) end, { 3, 5 }, { 3, 4 }, state },
  { "rnn cell without bias", function(nn) return nn.rnn_cell(5, 4, { bias = false, act = nn.relu }) end, { 3, 5 }, { 3, 4 },
    state },
  { "gru cell", function(nn) return nn.gru_cell(5, 4) end, { 3, 5 }, { 3, 4 }, state },
  { "lstm cell", called(function(nn) return nn.lstm_cell(5, 4) end, function(cell, y, h, c)
    local new, both = cell(y, { h = h, c = c })
    return new + both.c
  end), { 3, 5 }, { 3, 4 }, { state[1], state[1] } },
  { "attention of one", function(nn) return nn.multihead_attention(6, 2) end, x, x },
  { "attention without bias", function(nn) return nn.multihead_attention(6, 3, { bias = false }) end, x, x },
  { "attention causal", called(function(nn) return nn.multihead_attention(6, 2) end, function(part, y)
    return part(y, { causal = true })
  end), x, x },
  { "attention of two", function(nn) return nn.multihead_attention(6, 2) end, x, x, memory },
  { "attention of three", function(nn) return nn.multihead_attention(6, 2) end, x, x, { memory[1], memory[1] } },
  { "attention masked", called(function(nn) return nn.multihead_attention(6, 2) end, function(part, y, keys, seen)
    return part(y, keys, { mask = seen:ge(0):reshape(2, 1, 1, 3) })
  end), x, x, { memory[1], { { 2, 3 }, "signs" } } },
  { "attention biased", called(function(nn) return nn.multihead_attention(6, 2) end, function(part, y, keys, bias)
    return part(y, keys, keys, { bias = bias:reshape(1, 1, 4, 3) })
  end), x, x, { memory[1], { { 4, 3 }, "real" } } },
}
for _, first in ipairs { false, true } do
  local name = first and " norm first" or ""
  cases[#cases + 1] = { "encoder layer" .. name, called(function(nn)
    return nn.transformer_encoder_layer(6, 2, {
      hidden = 8, dropout = 0, norm_first = first, act = first and nn.gelu_exact or nn.relu, bias = first,
    })
  end, function(part, y, seen)
    return part(y, { mask = seen:ge(0):reshape(2, 1, 1, 4) })
  end), x, x, { { { 2, 4 }, "signs" } } }
  cases[#cases + 1] = { "decoder layer" .. name, called(function(nn)
    return nn.transformer_decoder_layer(6, 2, {
      hidden = 8, dropout = 0, norm_first = first, act = first and nn.gelu_exact or nn.relu, eps = 1e-3,
    })
  end, function(part, y, made, seen)
    return part(y, made, { causal = true }, { mask = seen:ge(0):reshape(2, 1, 1, 3) })
  end), x, x, { memory[1], { { 2, 3 }, "signs" } } }
end
return cases
