-- SPDX-License-Identifier: Apache-2.0
--
--- nn.upsample(factor, options)
--- [batch, channels, dims...] with more places in one to three dims: each takes the nearest one there was, or what lies
--- between neighbours, where places are the middles of their squares (PyTorch's align_corners = false).
---@param factor integer|integer[] for all dims or for each
---@param options? table
---@option mode string='nearest' nearest; or linear, bilinear, trilinear, of one, two, three dims
---@return orrery.Module
local _, orrery = ...
local in_single = require "orrery.in_single"
local spatial = require "orrery.nn.spatial"

local dims_of = { linear = 1, bilinear = 2, trilinear = 3 }

-- Every place of dim `at` so many times.
local function repeated(x, at, times)
  local apart, wide, joined = { table.unpack(x.shape) }, { table.unpack(x.shape) }, { table.unpack(x.shape) }
  table.insert(apart, at + 1, 1)
  table.insert(wide, at + 1, times)
  joined[at] = joined[at] * times
  return x:reshape(apart):broadcast(wide):reshape(joined)
end

-- Between the places of dim `at`, as a product with the weights [places there will be, places].
local function between(x, at, times)
  local size = x.shape[at]
  local places = ((orrery.iota(size * times):cast(x.dtype) + 0.5) / times - 0.5):clamp(0, size - 1)
  local far = (places:reshape(size * times, 1) - orrery.iota(size):cast(x.dtype)):abs()
  local weights = (1 - far):relu()
  if at == #x.shape then return x:matmul(weights, { transpose_b = true }) end
  return x:transpose(at, -1):matmul(weights, { transpose_b = true }):transpose(at, -1)
end

return orrery.nn.module("upsample", function(_, factor, options)
  local o = orrery.options("upsample", options, { mode = "nearest" })
  local wanted = dims_of[o.mode]
  if not wanted and o.mode ~= "nearest" then
    orrery.fail(("upsample: mode = %q: give \"nearest\", \"linear\", \"bilinear\" or \"trilinear\""):format(o.mode))
  end
  return in_single(function(x)
    local n = #x.shape - 2
    if n < 1 or n > 3 or wanted and n ~= wanted then
      orrery.fail(("upsample: x is %s, expected [batch, channels%s]"):format(tostring(x.shape), wanted
        and (", length"):rep(wanted) or ", one to three dims"))
    end
    for i, times in ipairs(spatial.each("upsample", "factor", factor, n, 1)) do
      if times > 1 then x = (wanted and between or repeated)(x, i + 2, times) end
    end
    return x
  end)
end)
