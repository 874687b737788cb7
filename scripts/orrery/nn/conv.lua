-- SPDX-License-Identifier: Apache-2.0
--
--- nn.conv1d(inputs, outputs, size, options)
--- As nn.conv2d, over [batch, inputs, length].
---@param inputs integer
---@param outputs integer
---@param size integer|integer[]
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

-- The layout of the weight, its name and how it begins are PyTorch's.
local _, orrery = ...
local nn = orrery.nn
local convolve = require "orrery.convolve"
local spatial = require "orrery.nn.spatial"
local defaults = { bias = true, init = nn.init.fan_in, dtype = "f32" }
for name, value in pairs(convolve.options) do defaults[name] = value end

return spatial.layers("conv", function(m, n, inputs, outputs, size, options)
  local what = ("conv%dd"):format(n)
  local o = orrery.options(what, options, defaults)
  size = spatial.each(what, "size", size, n, 1)
  local f = convolve.over(what, n, inputs, outputs, size, o)
  local bias = spatial.parameters(m, spatial.join(outputs, inputs // o.groups, size), outputs, o)
  return function(x) return f(x, m.weight, bias) end
end)
