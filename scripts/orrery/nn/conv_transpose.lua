-- SPDX-License-Identifier: Apache-2.0
--
--- nn.conv_transpose1d(inputs, outputs, size, options)
--- As nn.conv_transpose2d, over [batch, inputs, length].
---@param inputs integer
---@param outputs integer
---@param size integer|integer[]
---@param options? table
---@return orrery.Module

--- nn.conv_transpose2d(inputs, outputs, size, options)
--- What the gradient of nn.conv2d does, as a layer: each place of [batch, inputs, height, width] adds a window of
--- outputs to the result. The weight is [inputs, outputs / groups, size...].
---@param inputs integer channels
---@param outputs integer channels
---@param size integer|integer[] of the window, for all dims or for each, as all numbers of the options
---@param options? table
---@option stride integer|integer[]=1
---@option padding integer|integer[]=0 so much is cut off on both sides
---@option output_padding integer|integer[]=0 so much is left of that behind, or added; less than the stride or dilation
---@option dilation integer|integer[]=1
---@option groups integer=1 shares of the channels that see nothing of each other
---@option bias boolean=true
---@option init orrery.Initial=nn.init.fan_in how the weight begins
---@option dtype orrery.DType='f32'
---@return orrery.Module

--- nn.conv_transpose3d(inputs, outputs, size, options)
--- As nn.conv_transpose2d, over [batch, inputs, depth, height, width].
---@param inputs integer
---@param outputs integer
---@param size integer|integer[]
---@param options? table
---@return orrery.Module
local _, orrery = ...
local nn = orrery.nn
local spatial = require "orrery.nn.spatial"
local join = spatial.join

-- x [batch, places..., inputs] as windows [batch, places..., size..., outputs].
local function spread(x, weight, n)
  local y = x:matmul(spatial.to_last(weight, n):reshape(weight.shape[1], -1))
  return y:reshape(join({ table.unpack(x.shape, 1, n + 1) }, { table.unpack(weight.shape, 3, n + 2) }, weight.shape[2]))
end

-- Dim `dim` without `cut` elements on both sides, but for `kept` of those behind.
local function cropped(x, dim, cut, kept)
  local size = x.shape[dim] - 2 * cut + kept
  if kept > cut then x = x:pad(dim, x.shape[dim] + kept - cut) end
  return x:slice(dim, cut + 1, cut + size)
end

return spatial.layers("conv_transpose", function(m, n, inputs, outputs, size, options)
  local what = ("conv_transpose%dd"):format(n)
  local o = orrery.options(what, options, {
    stride = 1, padding = 0, output_padding = 0, dilation = 1, groups = 1, bias = true, init = nn.init.fan_in,
    dtype = "f32",
  })
  size = spatial.each(what, "size", size, n, 1)
  local stride, padding = spatial.each(what, "stride", o.stride, n, 1), spatial.each(what, "padding", o.padding, n, 0)
  local dilation = spatial.each(what, "dilation", o.dilation, n, 1)
  local kept = spatial.each(what, "output_padding", o.output_padding, n, 0)
  spatial.check_groups(what, o.groups, inputs, outputs)
  local dims = join(inputs, outputs // o.groups, size)
  local bias = spatial.parameters(m, dims, outputs, o)
  return function(x)
    spatial.check(what, x, n, inputs)
    local lengths = {}
    for i = 1, n do lengths[i] = (x.shape[2 + i] - 1) * stride[i] + (size[i] - 1) * dilation[i] + 1 end
    local y = spatial.in_groups(o.groups, spatial.to_last(x, n), m.weight, function(part, weight)
      return spread(part, weight, n):fold(lengths, { stride = stride, dilation = dilation })
    end)
    for i = 1, n do y = cropped(y, 1 + i, padding[i], kept[i]) end
    if bias then y = y + bias end
    return spatial.to_first(y, n)
  end
end)
