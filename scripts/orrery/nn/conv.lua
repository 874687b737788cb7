-- SPDX-License-Identifier: Apache-2.0
--
--- nn.conv1d(inputs, outputs, size, options)
--- As nn.conv2d, over [batch, inputs, length].
---@param inputs integer
---@param outputs integer
---@param size integer
---@param options? table
---@return orrery.Module

--- nn.conv2d(inputs, outputs, size, options)
--- Cross-correlation of [batch, inputs, height, width] with weights [outputs, inputs / groups, size...].
---@param inputs integer channels
---@param outputs integer channels
---@param size integer|integer[] of the window, for all dims or for each, as all numbers of the options
---@param options? table
---@option stride integer|integer[]=1
---@option padding integer|integer[]|string=0 zeros on both sides; "same": as many as keep the dims, where stride is 1
---@option dilation integer|integer[]=1
---@option groups integer=1 shares of the channels that see nothing of each other
---@option bias boolean=true
---@option init orrery.Initial=nn.init.fan_in how the weight begins
---@option dtype orrery.DType='f32'
---@return orrery.Module

--- nn.conv3d(inputs, outputs, size, options)
--- As nn.conv2d, over [batch, inputs, depth, height, width].
---@param inputs integer
---@param outputs integer
---@param size integer|integer[]
---@param options? table
---@return orrery.Module

-- A convolution is a product of matrices: the windows of all positions, which are a view of x (Tensor:windows), times
-- the weight. The layout of the weight, its name and how it begins are PyTorch's.
local _, orrery = ...
local nn = orrery.nn
local spatial = require "orrery.nn.spatial"
local join, range, product = spatial.join, spatial.range, spatial.product

-- Windows of x [batch, dims..., inputs] x weight [outputs, inputs, size...]. A product needs the windows one behind the
-- other in memory: the gradient has them made once more, so that none are kept until then.
local function dense(size, strides)
  local n = #size
  local function rows_of(x)
    local windows = x:windows(size, strides)
    return windows:reshape(join({ table.unpack(windows.shape, 1, n + 1) }, product(size) * x.shape[-1]))
  end
  local multiply = spatial.gradient { -- matrix [outputs, size... * inputs]
    forward = function(x, matrix) return rows_of(x):matmul(matrix, { transpose_b = true }) end,
    backward = function(dy, _, x, matrix)
      local places = { table.unpack(dy.shape, 1, n + 1) }
      local dx = dy:matmul(matrix):reshape(join(places, size, x.shape[-1])):fold(spatial.lengths(x, n), strides)
      local outputs, wide = matrix.shape[1], matrix.shape[2]
      return dx, dy:reshape(-1, outputs):matmul(rows_of(x):reshape(-1, wide), { transpose_a = true })
    end,
  }
  return function(x, weight) return multiply(x, spatial.to_last(weight, n):reshape(weight.shape[1], -1)) end
end

-- Each channel of x [batch, dims..., channels] with a weight of its own [channels, 1, size...]: element by element of a
-- window, so that no window is stored.
local function depthwise(size, strides)
  local n = #size
  local each = spatial.gradient { -- by_tap [size..., channels]
    forward = function(x, by_tap)
      local weights, y = { by_tap:reshape(-1, x.shape[-1]):split(1, product(size)) }, nil
      for i, tap in ipairs(spatial.taps(x:windows(size, strides), n)) do
        y = y and y + tap * weights[i] or tap * weights[i]
      end
      return y:reshape(join({ table.unpack(y.shape, 1, n + 1) }, y.shape[-1]))
    end,
    backward = function(dy, _, x, by_tap)
      local wide = dy:reshape(join({ table.unpack(dy.shape, 1, n + 1) }, spatial.filled(n, 1), dy.shape[-1]))
      return (wide * by_tap):fold(spatial.lengths(x, n), strides),
        (x:windows(size, strides) * wide):sum(range(1, n + 1))
    end,
  }
  return function(x, weight)
    return each(x, weight:permute(join(range(3, n + 2), 1, 2)):reshape(join(size, weight.shape[1])))
  end
end

-- What stands before and behind each dim.
local function borders(what, padding, size, strides)
  local n = #size
  if padding ~= "same" then
    local both = spatial.each(what, "padding", padding, n, 0)
    return both, both
  end
  local before, behind = {}, {}
  for i = 1, n do
    if strides.stride[i] ~= 1 then
      orrery.fail(("%s: padding = \"same\" with a stride of %d: give numbers"):format(what, strides.stride[i]))
    end
    local more = strides.dilation[i] * (size[i] - 1)
    before[i], behind[i] = more // 2, more - more // 2
  end
  return before, behind
end

return spatial.layers("conv", function(m, n, inputs, outputs, size, options)
  local what = ("conv%dd"):format(n)
  local o = orrery.options(what, options, {
    stride = 1, padding = 0, dilation = 1, groups = 1, bias = true, init = nn.init.fan_in, dtype = "f32",
  })
  size = spatial.each(what, "size", size, n, 1)
  local strides = {
    stride = spatial.each(what, "stride", o.stride, n, 1), dilation = spatial.each(what, "dilation", o.dilation, n, 1),
  }
  local before, behind = borders(what, o.padding, size, strides)
  spatial.check_groups(what, o.groups, inputs, outputs)
  local dims = join(outputs, inputs // o.groups, size)
  local bias = spatial.parameters(m, dims, outputs, o)
  local by_channel = inputs > 1 and o.groups == inputs and inputs == outputs and depthwise(size, strides)
  local all_channels = dense(size, strides)
  return function(x)
    spatial.check(what, x, n, inputs)
    x = spatial.pad(spatial.to_last(x, n), before, behind)
    local y = by_channel and by_channel(x, m.weight) or spatial.in_groups(o.groups, x, m.weight, all_channels)
    if bias then y = y + bias end
    return spatial.to_first(y, n)
  end
end)
