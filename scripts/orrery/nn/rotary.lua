-- SPDX-License-Identifier: Apache-2.0
--
--- nn.rotary(x, options)
--- Rotary positions: turns each pair of elements of every head of queries or keys [batch, time, heads * d] by an angle
--- that grows with the place, so that scores depend on how far a key is from a query.
---@param x orrery.Tensor
---@param options? table
---@option heads integer=1 how many heads share the last dim
---@option base number=10000 the slowest pair turns once in about 2 * pi * base places
---@option offset orrery.Tensor|number=0 the 0-based place of the first of `time`
---@option interleaved boolean=false pairs are neighbours, not elements of a head's first and second half
---@return orrery.Tensor

-- Su et al., "RoFormer", 2021 (arXiv:2104.09864), whose pairs are neighbours; halves are the convention of the weights
-- of LLaMA and others that are published for the library `transformers`.
local _, orrery = ...

return function(x, options)
  local o = orrery.options("rotary", options, { heads = 1, base = 10000, offset = 0, interleaved = false })
  local batch, time, width = table.unpack(x.shape)
  local half = #x.shape == 3 and o.heads > 0 and width // o.heads // 2
  if not half or half * 2 * o.heads ~= width then
    orrery.fail(("rotary: x is %s, expected [batch, time, %d heads of an even size]"):format(tostring(x.shape), o.heads))
  end
  local pair = o.interleaved and 5 or 4 -- the dim of two, in [batch, time, heads, pair or half, half or pair]
  local function apart(first, second) -- the dims of a head
    return table.unpack(o.interleaved and { second, first } or { first, second })
  end
  local wide = x.dtype == "f64" and "f64" or "f32"
  local place = (orrery.iota(time) + o.offset):cast(wide)
  local speed = (orrery.iota(half):cast(wide) * (-math.log(o.base) / half)):exp()
  local angle = (place:reshape(time, 1) * speed):reshape(1, time, 1, apart(1, half))
  local cos, sin = angle:cos():cast(x.dtype), angle:sin():cast(x.dtype)
  x = x:reshape(batch, time, o.heads, apart(2, half))
  local a, b = x:slice(pair, 1, 1), x:slice(pair, 2, 2)
  return orrery.concat({ a * cos - b * sin, b * cos + a * sin }, pair):reshape(batch, time, width)
end
