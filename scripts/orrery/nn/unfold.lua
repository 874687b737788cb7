-- SPDX-License-Identifier: Apache-2.0
--
--- nn.unfold(size, options)
--- All windows of [batch, channels, dims...] as columns [batch, channels * size..., windows], in PyTorch's order; nn.fold
--- puts them back. Tensor:windows is the view that it is made of.
---@param size integer|integer[] of the window in each dim; of one number there are two dims, as images have
---@param options? table
---@option stride integer|integer[]=1
---@option padding integer|integer[]=0 zeros on both sides
---@option dilation integer|integer[]=1
---@return orrery.Module
local _, orrery = ...
local spatial = require "orrery.nn.spatial"
local columns = require "orrery.columns"

return orrery.nn.module("unfold", function(_, size, options)
  local o = columns.options("unfold", size, options)
  return function(x)
    local n = #o.size
    spatial.check("unfold", x, n)
    local windows = spatial.pad(spatial.to_last(x, n), o.padding, o.padding):windows(o.size, { stride = o.stride, dilation = o.dilation })
    local places = spatial.product { table.unpack(windows.shape, 2, n + 1) }
    local rows = windows:reshape(x.shape[1], places, spatial.product(o.size), x.shape[2])
    return rows:permute(1, 4, 3, 2):reshape(x.shape[1], -1, places)
  end
end)
