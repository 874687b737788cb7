-- SPDX-License-Identifier: Apache-2.0
--
--- nn.weight_norm(layer, options)
--- A layer whose weight is made of its length and its direction, weight_g v / |v| with v = weight_v, which are trained
--- apart: lengths are of the rows along a dim. It begins with the weight that the layer has, which must be its own alone.
---@param layer orrery.Module
---@param options? table
---@option part string='weight' the part of the layer
---@option dim integer=1 that lengths are counted along; 2 for nn.conv_transpose2d
---@return orrery.Module

-- Salimans and Kingma, 2016 (arXiv:1602.07868).
local _, orrery = ...
local computed = require "orrery.computed_part"

-- All dims but one.
local function others(n, dim)
  local list = {}
  for i = 1, n do list[#list + 1] = i ~= dim and i or nil end
  return list
end

return orrery.nn.module("weight_norm", function(m, layer, options)
  local o = orrery.options("weight_norm", options, { part = "weight", dim = 1 })
  local value = computed.take("weight_norm", layer, o.part)
  local n = #value.shape
  if o.dim < 1 or o.dim > n then orrery.fail(("weight_norm: dim = %d of a part of %d dims"):format(o.dim, n)) end
  local function lengths(v) return v:sumsq(others(n, o.dim), { keep = true }):sqrt() end

  local first = orrery.func(lengths)(value)
  m.layer = layer
  m.weight_g = orrery.parameter(first.shape, { init = first, dtype = value.dtype })
  m.weight_v = orrery.parameter(value.shape, { init = value, dtype = value.dtype })
  return function(...)
    return computed.call(layer, o.part, m.weight_v * (m.weight_g / lengths(m.weight_v)), ...)
  end
end)
