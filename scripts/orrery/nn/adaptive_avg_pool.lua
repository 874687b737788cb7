-- SPDX-License-Identifier: Apache-2.0
--
--- nn.adaptive_avg_pool1d(size)
--- As nn.adaptive_avg_pool2d, over [batch, channels, length].
---@param size integer|integer[]
---@return orrery.Module

--- nn.adaptive_avg_pool2d(size)
--- Means of [batch, channels, height, width] over so many windows: the i-th of n over a length L goes from
--- floor(i*L/n) to ceil((i+1)*L/n), counted from 0.
---@param size integer|integer[] of the result, for all dims or for each
---@return orrery.Module

--- nn.adaptive_avg_pool3d(size)
--- As nn.adaptive_avg_pool2d, over [batch, channels, depth, height, width].
---@param size integer|integer[]
---@return orrery.Module
local _, orrery = ...
local spatial = require "orrery.nn.spatial"

-- The means along one dim; those of a window over several dims are the means of means.
local function means(x, dim, count)
  local length, parts = x.shape[dim], {}
  if length % count == 0 then
    local shape = { table.unpack(x.shape, 1, #x.shape) }
    shape[dim] = count
    table.insert(shape, dim + 1, length // count)
    return x:reshape(shape):mean(dim + 1)
  end
  for i = 0, count - 1 do
    local first, behind = i * length // count, -(-(i + 1) * length // count)
    parts[i + 1] = x:slice(dim, first + 1, behind):mean(dim, { keep = true })
  end
  return orrery.concat(parts, dim)
end

return spatial.layers("adaptive_avg_pool", function(_, n, size)
  local what = ("adaptive_avg_pool%dd"):format(n)
  size = spatial.each(what, "size", size, n, 1)
  return function(x)
    spatial.check(what, x, n)
    x = spatial.to_last(x, n)
    for i = n, 1, -1 do x = means(x, 1 + i, size[i]) end
    return spatial.to_first(x, n)
  end
end)
