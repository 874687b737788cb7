-- SPDX-License-Identifier: Apache-2.0
--
--- nn.fold(lengths, size, options)
--- Columns as nn.unfold makes them, [batch, channels * size..., windows], in their places of [batch, channels, lengths...]:
--- what windows share is added up. Tensor:fold is another one, which takes the windows of Tensor:windows.
---@param lengths integer|integer[] of the result; of one number there are two dims, as images have
---@param size integer|integer[] of the window in each dim
---@param options? table
---@option stride integer|integer[]=1
---@option padding integer|integer[]=0 what windows had beyond each side
---@option dilation integer|integer[]=1
---@return orrery.Module
local _, orrery = ...
local spatial = require "orrery.nn.spatial"
local columns = require "orrery.columns"

-- How many windows fit into each dim.
local function places_of(lengths, o)
  local places = {}
  for i, size in ipairs(o.size) do
    places[i] = (lengths[i] + 2 * o.padding[i] - o.dilation[i] * (size - 1) - 1) // o.stride[i] + 1
  end
  return places
end

return orrery.nn.module("fold", function(_, lengths, size, options)
  local n = type(lengths) == "table" and #lengths or 2
  local o = columns.options("fold", size, options, n)
  lengths = spatial.each("fold", "lengths", lengths, n, 1)
  local places, taps = places_of(lengths, o), spatial.product(o.size)
  local count = spatial.product(places)
  return function(x)
    local dims = x.shape
    if #dims ~= 3 or dims[2] % taps ~= 0 or dims[3] ~= count then
      orrery.fail(("fold: x is %s, expected [batch, channels * %d, %d]"):format(tostring(dims), taps, count))
    end
    local channels = dims[2] // taps
    local windows = x:reshape(dims[1], channels, taps, count):permute(1, 4, 3, 2)
      :reshape(spatial.join(dims[1], places, o.size, channels))
    local padded = {}
    for i = 1, n do padded[i] = lengths[i] + 2 * o.padding[i] end
    local y = windows:fold(padded, { stride = o.stride, dilation = o.dilation })
    for i = 1, n do y = y:slice(1 + i, o.padding[i] + 1, o.padding[i] + lengths[i]) end
    return spatial.to_first(y, n)
  end
end)
