-- SPDX-License-Identifier: Apache-2.0
--
--- nn.max_pool1d(size, options)
--- As nn.max_pool2d, over [batch, channels, length].
---@param size integer|integer[]
---@param options? table
---@return orrery.Module

--- nn.max_pool2d(size, options)
--- The largest of each window of [batch, channels, height, width]. Of several the first gets the gradient.
---@param size integer|integer[] of the window, for all dims or for each, as all numbers of the options
---@param options? table
---@option stride integer|integer[]=size
---@option padding integer|integer[]=0 of what is smaller than any number, on both sides
---@option dilation integer|integer[]=1
---@option ceil_mode boolean=false whether a last window may begin within the dim and its padding and reach beyond
---@return orrery.Module

--- nn.max_pool3d(size, options)
--- As nn.max_pool2d, over [batch, channels, depth, height, width].
---@param size integer|integer[]
---@param options? table
---@return orrery.Module
local _, orrery = ...
local spatial = require "orrery.nn.spatial"

-- Of [batch, dims..., channels]. Going over a window's elements as so many tensors, no window is stored, neither here
-- nor for the gradient.
local function largest(size, strides)
  local n = #size
  return spatial.gradient {
    forward = function(x)
      local y
      for _, tap in ipairs(spatial.taps(x:windows(size, strides), n)) do y = y and y:maximum(tap) or tap end
      return y:reshape(spatial.join({ table.unpack(y.shape, 1, n + 1) }, y.shape[-1]))
    end,
    backward = function(dy, y, x)
      local taps = spatial.taps(x:windows(size, strides), n)
      local shape = taps[1].shape
      local wide = { table.unpack(shape, 1, #shape) }
      dy, y = dy:reshape(wide), y:reshape(wide)
      local left -- where no element before was the largest
      for i, tap in ipairs(taps) do
        local hit = tap:eq(y)
        local first = left and left:logical_and(hit) or hit
        left = left and left:logical_and(hit:logical_not()) or hit:logical_not()
        taps[i] = first:select(dy, 0)
      end
      return spatial.untap(taps, size):fold(spatial.lengths(x, n), strides)
    end,
  }
end

-- How far a last window along dim i reaches beyond the padding of a length, if it begins before that: PyTorch's ceil_mode.
local function beyond(length, i, size, padding, strides)
  local span, stride = strides.dilation[i] * (size[i] - 1) + 1, strides.stride[i]
  local rest = length + 2 * padding[i] - span
  local last = -(-rest // stride) * stride -- where it begins
  return last < length + padding[i] and math.max(0, last - rest) or 0
end

return spatial.layers("max_pool", function(_, n, size, options)
  local what = ("max_pool%dd"):format(n)
  local o = orrery.options(what, options, { stride = size, padding = 0, dilation = 1, ceil_mode = false })
  size = spatial.each(what, "size", size, n, 1)
  local padding = spatial.each(what, "padding", o.padding, n, 0)
  local strides = {
    stride = spatial.each(what, "stride", o.stride, n, 1), dilation = spatial.each(what, "dilation", o.dilation, n, 1),
  }
  local pool = largest(size, strides)
  return function(x)
    spatial.check(what, x, n)
    x = spatial.to_last(x, n)
    local behind = {}
    for i = 1, n do behind[i] = padding[i] + (o.ceil_mode and beyond(x.shape[1 + i], i, size, padding, strides) or 0) end
    return spatial.to_first(pool(spatial.pad(x, padding, behind, -math.huge)), n)
  end
end)
