-- SPDX-License-Identifier: Apache-2.0
--
--- nn.relative_bias(heads, options)
--- T5's relative positions: what each head adds to the score of a key, by how far it is from the query. Distances fall
--- into buckets, near ones of one place each, far ones ever wider. Called with the numbers of queries and keys it gives
--- the `bias` of nn.attention, [1, heads, queries, keys]; layers share one.
---@param heads integer
---@param options? table
---@option buckets integer=32
---@option distance integer=128 where the last bucket begins to hold all that is further
---@option causal boolean=false all buckets are for keys before the query
---@option init orrery.Initial=nn.init.normal(0.02) how the table [buckets, heads] begins
---@return orrery.Module

-- Raffel et al., "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", 2020
-- (arXiv:1910.10683), section 2.1.
local _, orrery = ...
local nn = orrery.nn

-- The smallest distance of each bucket but the first, of `count`: up to half of them one by one, then geometric.
local function beginnings(count, distance)
  local exact, first = count // 2, {}
  for bucket = 1, count - 1 do
    local far = exact * (distance / exact) ^ ((bucket - exact) / (count - exact))
    first[bucket] = bucket <= exact and bucket or math.ceil(far - 1e-6)
  end
  return first
end

return nn.module("relative_bias", function(m, heads, options)
  local o = orrery.options("relative_bias", options, {
    buckets = 32, distance = 128, causal = false, init = nn.init.normal(0.02),
  })
  local count = o.causal and o.buckets or o.buckets // 2
  if count < 2 or o.distance <= count // 2 then
    orrery.fail(("relative_bias: %d buckets up to a distance of %d: give 4 buckets or more, and a distance beyond %d"):format(
      o.buckets, o.distance, count // 2))
  end
  local first, dims = beginnings(count, o.distance), { o.buckets, heads }
  m.weight = orrery.parameter(dims, { init = nn.init.resolve(o.init, dims) })
  return function(queries, keys)
    local before = orrery.iota(queries):reshape(queries, 1) - orrery.iota(keys) -- how far the key is behind
    local far = o.causal and before:maximum(0) or before:abs()
    local bucket = o.causal and far * 0 or before:lt(0):cast "i64" * count
    for _, distance in ipairs(first) do bucket = bucket + far:ge(distance):cast "i64" end
    return m.weight:gather(bucket):permute(3, 1, 2):reshape(1, heads, queries, keys)
  end
end)
