-- SPDX-License-Identifier: Apache-2.0
--
-- Losses and layers that train on 10 samples, in `microbatches` of several sizes: a line for each with its losses of two
-- steps and a digest.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { microbatches = 4, stack = "", only = "*" }
local rows, width = 10, 6

local function filled(seed, f, ...)
  local at, dims = 0, { ... }
  local function nested(level)
    if level > #dims then
      at = at + 1
      return f(math.sin(seed + 0.7 * at), at)
    end
    local list = {}
    for i = 1, dims[level] do list[i] = nested(level + 1) end
    return list
  end
  return nested(1)
end
local function same(x) return x end
local function unit(x) return 0.5 + 0.4 * x end
local batch = {
  x = filled(1, same, rows, width), y = filled(2, same, rows, width), z = filled(3, same, rows, width),
  p = filled(4, unit, rows, width), w = filled(5, unit, rows),
  class = filled(0, function(_, i) return i % 4 == 0 and -1 or i % width end, rows),
  label = filled(0, function(_, i) return i % 3 == 0 and 0 or 1 end, rows, 1),
  times = filled(0, function(_, i) return 1 + i % 3 end, rows), labels = filled(0, function(_, i) return i % 2 end, rows),
  sign = filled(0, function(_, i) return i % 3 == 0 and -1.0 or 1.0 end, rows),
}

-- name = {loss of what the network makes of x, of the batch[, what comes between]}
local cases = {
  mse_sum = { function(y, b) return nn.mse(y, b.y, { reduction = "sum" }) end },
  l1 = { function(y, b) return nn.l1(y, b.y) end },
  smooth_l1 = { function(y, b) return nn.smooth_l1(y, b.y, { beta = 0.5 }) end },
  huber_sum = { function(y, b) return nn.huber(y, b.y, { reduction = "sum" }) end },
  bce = { function(y, b) return nn.bce(y:sigmoid(), b.p) end },
  bce_with_logits = { function(y, b) return nn.bce_with_logits(y, b.p, { pos_weight = 3 }) end },
  kl_div = { function(y, b) return nn.kl_div(nn.log_softmax(y), b.p) end },
  kl_div_batchmean = { function(y, b) return nn.kl_div(y, b.p, { reduction = "batchmean" }) end },
  nll = { function(y, b) return nn.nll(nn.log_softmax(y), b.class, { ignore = -1, weights = b.w }) end },
  nll_none = { function(y, b) return nn.nll(nn.log_softmax(y), b.class, { ignore = -1, reduction = "none" }):mean() end },
  smoothed = { function(y, b) return nn.cross_entropy(y, b.class, { ignore = -1, label_smoothing = 0.1 }) end },
  class_weights = { function(y, b)
    return nn.cross_entropy(y, b.class, { ignore = -1, label_smoothing = 0.1, class_weights = { 3, 1, 0, 2, 0.5, 1 } })
  end },
  ctc = { function(y, b) -- each sample is a sequence of 3 times and 2 classes
    return nn.ctc(nn.log_softmax(y:reshape(-1, 3, 2)), b.label, b.times, b.labels)
  end },
  soft = { function(y, b) return nn.cross_entropy(y, b.p, { weights = b.w }) end },
  cosine_embedding = { function(y, b) return nn.cosine_embedding(y, b.z, b.sign, { margin = 0.1 }) end },
  triplet = { function(y, b) return nn.triplet(y, b.y, b.z, { swap = true }) end },
}

-- What comes between takes [batch, 3, 2], two tensors of it if it is a decoder.
local function of_sequences(layer)
  return nn.module("of_sequences", function(m)
    m.layer = layer
    return function(x)
      local y = x:reshape(-1, 3, 2)
      return m.layer(y, y:tanh(), { causal = true }):reshape(-1, width)
    end
  end)()
end
local function mse(y, b) return nn.mse(y, b.y) end
cases.encoder_layer = { mse, function()
  local layer = nn.transformer_encoder_layer(2, 1, { hidden = 4, dropout = 0.2 })
  return of_sequences(nn.module("alone", function(m)
    m.layer = layer
    return function(x, _, seen) return m.layer(x, seen) end
  end)())
end }
cases.decoder_layer = { mse, function()
  return of_sequences(nn.transformer_decoder_layer(2, 2, { hidden = 4, dropout = 0.2, norm_first = true }))
end }
cases.attention = { mse, function() return of_sequences(nn.multihead_attention(2, 2)) end }
cases.layernorm_plain = { mse, function() return nn.layernorm(width, { affine = false }) end }
cases.weight_norm = { mse, function() return nn.weight_norm(nn.linear(width, width)) end }
cases.spectral_norm = { mse, function() return nn.spectral_norm(nn.linear(width, width)) end }
cases.prelu = { mse, function() return nn.prelu(width) end }
cases.lstm_cell = { mse, function()
  return nn.module("again", function(m)
    m.cell = nn.lstm_cell(width, width)
    return function(x)
      local h, state = m.cell(x)
      local last = m.cell(h, state)
      return last
    end
  end)()
end }
cases.lstm_lengths = { mse, function()
  return nn.module("packed", function(m)
    m.layer = nn.lstm(2, 1, { bidirectional = true })
    return function(x)
      local lengths = x:slice(2, 1, 1):sum(2):gt(0):cast "i64" + 2
      local y, last = m.layer(x:reshape(-1, 3, 2), { lengths = lengths })
      return y:reshape(-1, width) + last.h:sum({ 2, 3 }, { keep = true }):reshape(-1, 1)
    end
  end)()
end }
cases.convolution = { mse, function()
  return nn.module("computed", function(m)
    m.part = nn.linear(2, 6)
    return function(x)
      local weight = m.part(m.part.weight):tanh():reshape(6, 2, 3) -- of parameters alone
      return nn.convolution(x:reshape(-1, 2, 3), weight, { padding = 1 }):mean(3)
    end
  end)()
end }
cases.columns = { mse, function()
  local columns, back = nn.unfold({ 2 }, { padding = 1 }), nn.fold({ 3 }, { 2 }, { padding = 1 })
  return function(x) return back(columns(x:reshape(-1, 2, 3)):tanh()):reshape(-1, width) end
end }
cases.bilinear = { mse, function()
  return nn.module("squares", function(m)
    m.part = nn.bilinear(width, width, width)
    return function(x) return m.part(x, x:tanh()) end
  end)()
end }

local names = {}
for name in pairs(cases) do
  if orrery.glob(args.only, name) then names[#names + 1] = name end
end
table.sort(names)
for _, name in ipairs(names) do
  orrery.seed(1)
  local loss, make = table.unpack(cases[name])
  local net = nn.sequential { nn.linear(width, width), make and make() or nn.tanh, nn.linear(width, width) }
  local run = orrery.compile(function(b) return loss(net(b.x), b) end, {
    params = net, optimizer = optim.sgd { lr = 0.05 }, microbatches = args.microbatches,
    strategy = load("local strategy = ...; return {" .. args.stack .. "}")(orrery.strategy),
  })
  local first = run:step(batch):mean()
  orrery.log("%s %.9g %.9g %s", name, first, run:step(batch):mean(), orrery.digest(net))
end
