-- SPDX-License-Identifier: Apache-2.0
--
-- What attention may be asked to look at, against scores that are masked by hand; rotary positions, and exact GELU.
local orrery = require "orrery"
local nn = orrery.nn
orrery.seed(4)

local B, T, S, heads, depth = 2, 3, 5, 4, 2
local function tensor(batch, time, width)
  local rows = {}
  for b = 1, batch do
    rows[b] = {}
    for t = 1, time do
      rows[b][t] = {}
      for c = 1, width do rows[b][t][c] = math.random() * 4 - 2 end
    end
  end
  return orrery.tensor(rows, "f32")
end
local q, k, v = tensor(B, T, heads * depth), tensor(B, S, heads * depth), tensor(B, S, heads * depth)

-- Of each query and head the weights of values by a formula; seen(b, t, s) and added(h, t, s) count from 0.
local function by_hand(queries, keys, values, seen, added, kv_heads)
  local Q, K, V, out = queries:tolist(), keys:tolist(), values:tolist(), {}
  for b = 1, B do
    out[b] = {}
    for t = 1, T do
      out[b][t] = {}
      for h = 0, heads - 1 do
        local from, e, sum = h * kv_heads // heads * depth, {}, 0
        for s = 1, #K[b] do
          local score = 0
          for c = 1, depth do score = score + Q[b][t][h * depth + c] * K[b][s][from + c] end
          e[s] = seen(b - 1, t - 1, s - 1) and math.exp(score / math.sqrt(depth) + added(h, t - 1, s - 1)) or 0
          sum = sum + e[s]
        end
        for c = 1, depth do
          local y = 0
          for s = 1, #K[b] do y = y + e[s] * V[b][s][from + c] end
          out[b][t][h * depth + c] = sum > 0 and y / sum or 0
        end
      end
    end
  end
  return out
end

local function near(got, want, what)
  if type(want) == "table" then
    for i, each in ipairs(want) do near(got[i], each, what .. "." .. i) end
  else
    assert(math.abs(got - want) < 1e-5, ("%s: %g, expected %g"):format(what, got, want))
  end
end
local function always() return true end
local function nothing() return 0 end

-- `options`: a function of nothing that is called where the attention is traced.
local function check(what, options, seen, added)
  local f = orrery.func(function(a, b, c)
    local o = options()
    o.heads = heads
    return nn.attention(a, b, c, o)
  end)
  near(f(q, k, v):tolist(), by_hand(q, k, v, seen or always, added or nothing, heads), what)
end

check("plain", function() return {} end)
check("causal", function() return { causal = true } end, function(_, t, s) return s - S <= t - T end)
check("window", function() return { causal = true, window = 2 } end,
  function(_, t, s) return t + S - T >= s and t + S - T - s < 2 end)
check("window to both sides", function() return { window = 2 } end,
  function(_, t, s) return math.abs(t + S - T - s) < 2 end)
check("offset", function() return { causal = true, offset = 1 } end, function(_, t, s) return s <= t + 1 end)
check("offset that is a tensor", function() return { causal = true, offset = orrery.iota(2):slice(1, 2, 2):sum() } end,
  function(_, t, s) return s <= t + 1 end)
check("nothing seen", function() return { causal = true, offset = -2 } end, function(_, t, s) return s <= t - 2 end)
check("mask", function() return { mask = orrery.iota(S):ne(3) } end, function(_, _, s) return s ~= 3 end)
check("mask of pairs", function() return { mask = orrery.iota(T):reshape(T, 1):gt(orrery.iota(S)), window = 4 } end,
  function(_, t, s) return t > s and math.abs(t + S - T - s) < 4 end)
check("bias", function()
  return { bias = orrery.iota(heads):reshape(heads, 1, 1) * -0.5 * orrery.iota(S), mask = orrery.iota(S):lt(4) }
end, function(_, _, s) return s < 4 end, function(h, _, s) return -0.5 * h * s end)

local few_k, few_v = tensor(B, S, 2 * depth), tensor(B, S, 2 * depth)
local grouped = orrery.func(function(a, b, c) return nn.attention(a, b, c, { heads = heads, kv_heads = 2, causal = true }) end)
near(grouped(q, few_k, few_v):tolist(),
  by_hand(q, few_k, few_v, function(_, t, s) return s - S <= t - T end, nothing, 2), "grouped queries")

-- Padding: each sample has keys of its own.
local lengths = orrery.tensor({ 2, 4 }, "i64")
local padded = orrery.func(function(a, b, c, n)
  local seen = orrery.iota(S):reshape(1, 1, 1, S):lt(n:reshape(B, 1, 1, 1))
  return nn.attention(a, b, c, { heads = heads, mask = seen })
end)
near(padded(q, k, v, lengths):tolist(), by_hand(q, k, v, function(b, _, s) return s < (b == 0 and 2 or 4) end, nothing, heads),
  "padding")

-- Rotary positions turn the pair (x, y) at place t by t * base^(-2i/d).
local x = tensor(1, 3, 8):tolist()
local turned = orrery.func(function(t, offset)
  return nn.rotary(t, { heads = 2, base = 100, offset = offset }),
    nn.rotary(t, { heads = 2, base = 100, offset = offset, interleaved = true })
end)
local halves, neighbours = turned(orrery.tensor(x, "f32"), 5)
for t = 1, 3 do
  for h = 0, 1 do
    for i = 0, 1 do
      local angle = (t - 1 + 5) * 100 ^ (-i / 2)
      local function expect(got, first, second, what)
        local a, b = x[1][t][h * 4 + first], x[1][t][h * 4 + second]
        near(got[1][t][h * 4 + first], a * math.cos(angle) - b * math.sin(angle), what)
        near(got[1][t][h * 4 + second], b * math.cos(angle) + a * math.sin(angle), what)
      end
      expect(halves:tolist(), 1 + i, 3 + i, "rotary")
      expect(neighbours:tolist(), 1 + 2 * i, 2 + 2 * i, "rotary of neighbours")
    end
  end
end

-- x times the normal distribution function.
local gelu = orrery.func(nn.gelu_exact)(orrery.tensor({ 1.0, -2.0 }, "f32")):tolist()
near(gelu, { 0.8413447, -0.0455003 }, "gelu_exact")

local function refused(call, words)
  local ok, message = pcall(call)
  assert(not ok and tostring(message):find(words, 1, true), message)
end
local model = nn.linear(8, 8)
refused(function()
  orrery.compile(function(b)
    local y = model(b.x)
    return nn.attention(y, y, y, { heads = 2, mask = b.mask:ne(0) }):mean()
  end, { params = model, optimizer = orrery.optim.sgd {} })
    :step { x = tensor(3, 3, 8), mask = { { 1, 1, 0 }, { 1, 1, 1 }, { 1, 0, 0 } } }
end, "the mask [3,3] has its samples in dim 1, expected [B,H,T,S] with them first")
refused(function() orrery.func(function(a) return nn.rotary(a, { heads = 8 }) end)(q) end, "expected [batch, time, 8 heads")
refused(function() nn.relative_bias(2, { buckets = 2 }) end, "2 buckets up to a distance of 128: give 4 buckets or more")
