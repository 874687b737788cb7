-- SPDX-License-Identifier: Apache-2.0
--
--- nn.convolution(x, weight, options)
--- What nn.conv1d, nn.conv2d and nn.conv3d compute, with a weight [outputs, inputs / groups, size...] that is given: a
--- parameter of your own, or what another part of the model has computed. It has one to three dims more than these two.
---@param x orrery.Tensor [batch, inputs, dims...]
---@param weight orrery.Tensor
---@param options? table
---@option bias orrery.Tensor=nil [outputs]
---@option stride integer|integer[]=1
---@option padding integer|integer[]|string=0 as of nn.conv2d
---@option dilation integer|integer[]=1
---@option groups integer=1
---@return orrery.Tensor
local _, orrery = ...
local convolve = require "orrery.convolve"
local defaults = { bias = false }
for name, value in pairs(convolve.options) do defaults[name] = value end

return function(x, weight, options)
  local o = orrery.options("convolution", options, defaults)
  local dims = weight.shape
  local n = #dims - 2
  if n < 1 or n > 3 then
    orrery.fail(("convolution: the weight is %s, expected [outputs, inputs / groups, size...] with one to three sizes")
      :format(tostring(dims)))
  end
  if o.bias and (#o.bias.shape ~= 1 or o.bias.shape[1] ~= dims[1]) then
    orrery.fail(("convolution: bias is %s, expected [%d]"):format(tostring(o.bias.shape), dims[1]))
  end
  local size = { table.unpack(dims, 3) }
  return convolve.over("convolution", n, dims[2] * o.groups, dims[1], size, o)(x, weight, o.bias)
end
