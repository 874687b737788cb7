-- SPDX-License-Identifier: Apache-2.0
--
-- Convolutions of [batch, channels, dims...] with weights [outputs, inputs / groups, size...], which nn.conv2d and its kin
-- have and nn.convolution is given. A convolution is a product of matrices: the windows of all positions, which are a view
-- of x (Tensor:windows), times the weight.
local _, orrery = ...
local depthwise = require "orrery.depthwise"
local input = require "orrery.convolve_input"
local spatial = require "orrery.nn.spatial"
local join = spatial.join
local M = {}

-- The matrix [outputs, size... * inputs] of a convolution, or of each group, for some taps of its windows: [taps *
-- outputs, inputs].
local function of_taps(matrix, inputs, groups, taps)
  local outputs, chosen = matrix.shape[-2], {}
  local by_tap = matrix:reshape(groups, outputs, -1, inputs):permute(1, 3, 2, 4)
  local each = { by_tap:split(2, by_tap.shape[2]) }
  for i, tap in ipairs(taps) do chosen[i] = each[tap] end
  local all = #taps == 1 and chosen[1] or orrery.concat(chosen, 2)
  return all:reshape(join(groups > 1 and groups or {}, #taps * outputs, inputs))
end

-- Windows of x [batch, dims..., inputs], padded, x weight [outputs, inputs / groups, size...]; all groups are one product.
-- Kernels read the windows where they overlap; where they do not, the gradient has them made once more, so that none are
-- kept until then.
local function dense(size, strides, before, behind, groups)
  local n, at = #size, groups == 1 and 1 or 2 -- dims before the spatial ones
  local gathered = input.gradient(size, strides, before)
  local function input_gradient(dy, x, padded, matrix)
    if gathered and x.shape[-1] >= 16 then -- fewer do not fill a product's lanes
      return gathered(dy, x, function(windows, taps)
        return spatial.times(windows, n, of_taps(matrix, x.shape[-1], groups, taps), groups)
      end)
    end
    local each = groups == 1 and dy or spatial.flat(dy, at + n + 1, groups)
    local windows = each:matmul(matrix):reshape(join({ table.unpack(dy.shape, 1, at + n) }, size, x.shape[-1]))
    local dx = windows:fold(spatial.lengths(padded, n), strides)
    for i = 1, n do dx = dx:slice(at + i, before[i] + 1, before[i] + x.shape[at + i]) end
    return dx
  end
  local multiply = spatial.gradient { -- matrix [outputs, size... * inputs]; of several groups all have a dim first
    forward = function(_, padded, matrix)
      return spatial.times(padded:windows(size, strides), n, matrix, groups, { transpose_b = true })
    end,
    backward = function(dy, _, x, padded, matrix)
      local rows = spatial.flat(padded:windows(size, strides), at + n + 1, groups)
      local of_matrix = spatial.flat(dy, at + n + 1, groups):matmul(rows, { transpose_a = true })
      return input_gradient(dy, x, padded, matrix), nil, of_matrix
    end,
  }
  return function(x, weight)
    local matrix, outputs = spatial.to_last(weight, n), weight.shape[1]
    matrix = groups == 1 and matrix:reshape(outputs, -1) or matrix:reshape(groups, outputs // groups, -1)
    x = spatial.groups_first(x, groups)
    return spatial.groups_last(multiply(x, spatial.pad(x, before, behind), matrix), groups)
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

-- The options of a convolution, and their defaults.
M.options = { stride = 1, padding = 0, dilation = 1, groups = 1 }

-- f(x, weight) over n dims of `inputs` channels to `outputs`, in windows of `size`.
function M.over(what, n, inputs, outputs, size, o)
  local strides = {
    stride = spatial.each(what, "stride", o.stride, n, 1), dilation = spatial.each(what, "dilation", o.dilation, n, 1),
  }
  local before, behind = borders(what, o.padding, size, strides)
  spatial.check_groups(what, o.groups, inputs, outputs)
  local by_channel = inputs > 1 and o.groups == inputs and inputs == outputs
    and depthwise(size, strides, before, behind)
  local at_once = n < 3 and o.groups or 1 -- a tensor has at most eight dims
  local by_groups = dense(size, strides, before, behind, at_once)
  return function(x, weight, bias)
    spatial.check(what, x, n, inputs)
    x = spatial.to_last(x, n)
    local y = by_channel and by_channel(x, weight) or spatial.in_groups(o.groups // at_once, x, weight, by_groups)
    if bias then y = y + bias end
    return spatial.to_first(y, n)
  end
end

return M
