-- SPDX-License-Identifier: Apache-2.0
--
-- Names of parameters that files of PyTorch have, cells beside whole recurrences, dropout, 16 bits, and what layers refuse.
local orrery = require "orrery"
local nn = orrery.nn
orrery.seed(7)

local function names_of(module)
  local names = {}
  for _, parameter in ipairs(orrery.parameters(module)) do names[#names + 1] = parameter.name end
  return table.concat(names, " ")
end
local function equal(found, wanted) assert(found == wanted, ("'%s', expected '%s'"):format(tostring(found), tostring(wanted))) end
equal(names_of(nn.multihead_attention(4, 2)), "in_proj_bias in_proj_weight out_proj.bias out_proj.weight")
equal(names_of(nn.multihead_attention(4, 2, { bias = false })), "in_proj_weight out_proj.weight")
equal(names_of(nn.transformer_encoder_layer(4, 2)), "linear1.bias linear1.weight linear2.bias linear2.weight norm1.bias "
  .. "norm1.weight norm2.bias norm2.weight self_attn.in_proj_bias self_attn.in_proj_weight self_attn.out_proj.bias "
  .. "self_attn.out_proj.weight")
equal(names_of(nn.lstm_cell(2, 3)), "bias_hh bias_ih weight_hh weight_ih")
equal(names_of(nn.rnn(2, 3, { layers = 2, bias = false })), "weight_hh_l0 weight_hh_l1 weight_ih_l0 weight_ih_l1")
equal(names_of { nn.layernorm(4, { bias = false }), nn.rmsnorm(4, { affine = false }) }, "1.weight")

-- The initial values are PyTorch's: zeros of biases, Glorot's of the three projections as one.
local attention = nn.multihead_attention(64, 2)
for _, value in ipairs(attention.in_proj_bias:read():tolist()) do assert(value == 0) end
for _, value in ipairs(attention.out_proj.bias:read():tolist()) do assert(value == 0) end
local largest = 0
for _, row in ipairs(attention.in_proj_weight:read():tolist()) do
  for _, value in ipairs(row) do largest = math.max(largest, math.abs(value)) end
end
local bound = math.sqrt(6 / (64 * 4))
assert(largest <= bound * (1 + 1e-6) and largest > 0.98 * bound)

-- A cell at each time is the recurrence, and begins with zeros.
local x = orrery.tensor({ { { 1, -2 }, { 0.5, 3 }, { -1, 1 } }, { { 2, 0 }, { 1, 1 }, { 0, -1 } } }, "f32")
for _, kind in ipairs { "lstm", "gru", "rnn" } do
  local whole, cell = nn[kind](2, 3), nn[kind .. "_cell"](2, 3)
  for _, name in ipairs { "weight_ih", "weight_hh", "bias_ih", "bias_hh" } do
    cell[name]:write(whole[name .. "_l0"]:read())
  end
  local apart = orrery.func(function(s)
    local y = whole(s)
    local by_cell = orrery.scan(function(state, at)
      local h, new = cell(at, state)
      return new, h
    end, nil, s)
    return (y - by_cell):abs():max(), y:abs():max()
  end)
  local difference, size = apart(x)
  assert(difference:item() < 1e-6 and size:item() > 0.1, kind)
end

-- Dropout is there in training only.
local encoder = nn.transformer_encoder_layer(2, 1, { hidden = 4, dropout = 0.5, norm_first = true })
local evaluated = orrery.func(function(s) return (encoder(s) - encoder(s)):abs():max() end)
assert(evaluated(x):item() == 0)
local difference
local run = orrery.compile(function(b)
  local a = encoder(b.x)
  return a:mean(), { apart = (a - encoder(b.x)):abs():mean() }
end, { params = encoder, optimizer = orrery.optim.sgd {} })
difference = run:step({ x = x }):get "apart"
assert(difference > 0.1, difference)

local upsampled = orrery.func(function(s) return nn.upsample(2, { mode = "linear" })(s:cast "bf16") end)(x)
equal(upsampled.dtype, "bf16")
equal(table.concat(upsampled:tolist()[2][3], " "), "0.0 -0.25 -0.75 -1.0")

local function refused(words, f)
  local ok, message = pcall(f)
  assert(not ok and message:find(words, 1, true), ("'%s', expected '%s'"):format(tostring(message), words))
end
local function called(layer, ...)
  local more = { ... }
  return function() orrery.func(function(s) return layer(s, table.unpack(more)) end)(x) end
end
refused("multihead_attention: 3 heads do not divide 4", function() nn.multihead_attention(4, 3) end)
refused("multihead_attention: unknown option 'masks'", called(nn.multihead_attention(2, 1), { masks = 1 }))
refused("multihead_attention: argument 2 is number, expected keys", called(nn.multihead_attention(2, 1), 1))
local trailing = orrery.func(function(s)
  local layer = nn.multihead_attention(2, 1)
  return (layer(s, nil, nil, { causal = true }) - layer(s, { causal = true })):abs():max()
end)
equal(trailing(x):item(), 0.0)
refused("multihead_attention: argument 2 is nil, expected keys", function()
  orrery.func(function(s) return nn.multihead_attention(2, 1)(s, nil, s) end)(x)
end)
refused("transformer_encoder_layer: Tensor given, expected a table such as", function()
  orrery.func(function(s) return encoder(s, s) end)(x)
end)
local decoder = nn.transformer_decoder_layer(2, 1, { hidden = 4 })
refused("transformer_decoder_layer: table given as second argument", called(decoder, { causal = true }))
refused("transformer_decoder_layer: nil given as second argument", called(decoder))
refused("unknown option 'is_causal'", called(encoder, { is_causal = true }))
refused("x is [2,3,2], expected [batch, 4]", called(nn.gru_cell(4, 2)))
refused("bilinear: x is [2,3,2] and y [2,3,2], expected [..., 2] and [..., 3]", function()
  orrery.func(function(s) return nn.bilinear(2, 3, 1)(s, s) end)(x)
end)
refused('upsample: mode = "cubic": give "nearest"', function() nn.upsample(2, { mode = "cubic" }) end)
refused("upsample: x is [2,3,2], expected [batch, channels, length, length]", called(nn.upsample(2, { mode = "bilinear" })))
refused("upsample: factor is 0, expected 1 integers of at least 1", called(nn.upsample(0)))
refused("pixel_shuffle: x is [2,3,2], expected", called(nn.pixel_shuffle(2)))
refused("pixel_shuffle: 3 channels are no multiple of 4", function()
  orrery.func(function(s) return nn.pixel_shuffle(2)(s:reshape(2, 3, 2, 1)) end)(x)
end)
