-- SPDX-License-Identifier: Apache-2.0
--
--- nn.multihead_attention(dim, heads, options)
--- Attention with projections of its own. Called with x [batch, time, dim] and perhaps with what is attended to, keys and
--- values, or one for both; and at last perhaps with a table of `causal`, `mask`, `bias` and `window` as orrery.attention
--- takes them: a mask is true where a key is seen. Parameters are named and laid out as PyTorch's (in_proj_weight,
--- out_proj.weight).
---@param dim integer
---@param heads integer a divisor of dim
---@param options? table
---@option bias boolean=true
---@option dropout number=0 in training, of the weights of keys
---@option dtype orrery.DType='f32'
---@return orrery.Module

-- Vaswani et al., "Attention Is All You Need", 2017 (arXiv:1706.03762).
local _, orrery = ...
local nn = orrery.nn

local tensors = { Tensor = true, State = true }

-- Keys and values, if they are given, and the table at the end.
local function arguments(...)
  local given, count = { ... }, select("#", ...)
  local function trim()
    while count > 0 and given[count] == nil do count = count - 1 end
  end
  trim()
  local seen = orrery.type(given[count]) == "table" and given[count] or nil
  if seen then
    given[count] = nil
    trim()
  end
  for i = 1, count do
    if i > 2 or not tensors[orrery.type(given[i])] then
      orrery.fail(("multihead_attention: argument %d is %s, expected keys, values and a table"):format(
        i + 1, orrery.type(given[i])))
    end
  end
  return given[1], given[2], seen
end

return nn.module("multihead_attention", function(m, dim, heads, options)
  local o = orrery.options("multihead_attention", options, { bias = true, dropout = 0, dtype = "f32" })
  if heads < 1 or dim % heads ~= 0 then
    orrery.fail(("multihead_attention: %d heads do not divide %d"):format(heads, dim))
  end
  local dims = { 3 * dim, dim }
  m.in_proj_weight = orrery.parameter(dims, { init = nn.init.xavier(dims), dtype = o.dtype })
  if o.bias then m.in_proj_bias = orrery.parameter(3 * dim, { init = nn.init.zeros, dtype = o.dtype }) end
  m.out_proj = nn.linear(dim, dim, { bias = o.bias, bias_init = nn.init.zeros, dtype = o.dtype })

  -- The products of x with `count` of queries', keys' and values' weights, from the first-th on.
  local function projected(x, first, count)
    local weight, bias = m.in_proj_weight, o.bias and m.in_proj_bias
    if count < 3 then
      local from, to = (first - 1) * dim + 1, (first - 1 + count) * dim
      weight, bias = weight:slice(1, from, to), bias and bias:slice(1, from, to)
    end
    local y = x:matmul(weight, { transpose_b = true })
    if bias then y = y + bias end
    if count == 1 then return y end
    return y:split(-1, count)
  end

  return function(x, ...)
    local key, value, given = arguments(...)
    local seen = orrery.options("multihead_attention", given, { causal = false, mask = false, bias = false, window = false })
    local q, k, v
    if not key then
      q, k, v = projected(x, 1, 3)
    elseif not value then
      q, k, v = projected(x, 1, 1), projected(key, 2, 2)
    else
      q, k, v = projected(x, 1, 1), projected(key, 2, 1), projected(value, 3, 1)
    end
    local y = nn.attention(q, k, v, {
      heads = heads, dropout = o.dropout, causal = seen.causal, mask = seen.mask or nil, bias = seen.bias or nil,
      window = seen.window or nil,
    })
    y = m.out_proj(y)
    return y
  end
end)
