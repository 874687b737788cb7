-- SPDX-License-Identifier: Apache-2.0
--
--- nn.avg_pool1d(size, options)
--- As nn.avg_pool2d, over [batch, channels, length].
---@param size integer|integer[]
---@param options? table
---@return orrery.Module

--- nn.avg_pool2d(size, options)
--- The mean of each window of [batch, channels, height, width].
---@param size integer|integer[] of the window, for all dims or for each, as all numbers of the options
---@param options? table
---@option stride integer|integer[]=size
---@option padding integer|integer[]=0 zeros on both sides
---@option count_include_pad boolean=true whether these zeros count
---@return orrery.Module

--- nn.avg_pool3d(size, options)
--- As nn.avg_pool2d, over [batch, channels, depth, height, width].
---@param size integer|integer[]
---@param options? table
---@return orrery.Module
local _, orrery = ...
local in_single = require "orrery.in_single"
local spatial = require "orrery.nn.spatial"

-- The sums of the windows of [batch, dims..., channels], element by element of a window; their gradient goes back by
-- one fold.
local function sums(size, strides)
  local n = #size
  return spatial.gradient {
    forward = function(x)
      local y
      for _, tap in ipairs(spatial.taps(x:windows(size, strides), n)) do y = y and y + tap or tap end
      return y:reshape(spatial.join({ table.unpack(y.shape, 1, n + 1) }, y.shape[-1]))
    end,
    backward = function(dy, _, x)
      local places = { table.unpack(dy.shape, 1, n + 1) }
      local each = dy:reshape(spatial.join(places, spatial.filled(n, 1), dy.shape[-1]))
      return each:broadcast(spatial.join(places, size, dy.shape[-1])):fold(spatial.lengths(x, n), strides)
    end,
  }
end

return spatial.layers("avg_pool", function(_, n, size, options)
  local what = ("avg_pool%dd"):format(n)
  local o = orrery.options(what, options, { stride = size, padding = 0, count_include_pad = true })
  size = spatial.each(what, "size", size, n, 1)
  local padding = spatial.each(what, "padding", o.padding, n, 0)
  local sum = sums(size, { stride = spatial.each(what, "stride", o.stride, n, 1) })
  return in_single(function(x)
    spatial.check(what, x, n)
    x = spatial.to_last(x, n)
    local count = spatial.product(size)
    if not o.count_include_pad then
      local ones = orrery.ones(spatial.join(1, spatial.lengths(x, n), 1), x.dtype)
      count = sum(spatial.pad(ones, padding, padding))
    end
    return spatial.to_first(sum(spatial.pad(x, padding, padding)) / count, n)
  end)
end)
