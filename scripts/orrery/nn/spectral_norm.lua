-- SPDX-License-Identifier: Apache-2.0
--
--- nn.spectral_norm(layer, options)
--- A layer whose weight, as a matrix of the rows along a dim, is divided by its largest singular value. That is what a power
--- iteration finds, which goes on with each call in training: its vectors are the buffers u and v. The layer's weight must
--- be its own alone.
---@param layer orrery.Module
---@param options? table
---@option part string='weight' the part of the layer
---@option dim integer=1 that rows are counted along; 2 for nn.conv_transpose2d
---@option iterations integer=1 of a call in training
---@option eps number=1e-12 the least length that a vector is divided by
---@return orrery.Module

-- Miyato et al., 2018 (arXiv:1802.05957).
local _, orrery = ...
local nn = orrery.nn
local computed = require "orrery.computed_part"

-- A weight as a matrix of the rows along a dim.
local function matrix(weight, dim)
  if dim ~= 1 then
    local order = { dim }
    for i = 1, #weight.shape do order[#order + 1] = i ~= dim and i or nil end
    weight = weight:permute(order)
  end
  return weight:reshape(weight.shape[1], -1)
end

local function unit(x, eps) return x / x:sumsq():sqrt():maximum(eps) end

-- w times a vector, of its rows or columns.
local function times(w, x, transposed)
  local y = transposed and x:reshape(1, -1):matmul(w) or w:matmul(x:reshape(-1, 1))
  return y:reshape(-1)
end

local function iterated(w, u, v, count, eps)
  for _ = 1, count do
    u = unit(times(w, v), eps)
    v = unit(times(w, u, true), eps)
  end
  return u, v
end

return nn.module("spectral_norm", function(m, layer, options)
  local o = orrery.options("spectral_norm", options, { part = "weight", dim = 1, iterations = 1, eps = 1e-12 })
  if o.iterations < 1 then orrery.fail(("spectral_norm: iterations = %d, expected at least 1"):format(o.iterations)) end
  local value = computed.take("spectral_norm", layer, o.part)
  local n = #value.shape
  if n < 2 or o.dim < 1 or o.dim > n then
    orrery.fail(("spectral_norm: dim = %d of a part of %d dims, expected one of at least two"):format(o.dim, n))
  end
  m.layer = layer
  m.weight = orrery.parameter(value.shape, { init = value, dtype = value.dtype })
  local rows, columns = value.shape[o.dim], 1
  for i, size in ipairs(value.shape) do columns = i ~= o.dim and columns * size or columns end
  m.u = orrery.buffer(rows, { init = nn.init.normal(1), dtype = value.dtype })
  m.v = orrery.buffer(columns, { init = nn.init.normal(1), dtype = value.dtype })
  local u, v = orrery.func(function(w, x, y)
    return iterated(matrix(w, o.dim), x, unit(y, o.eps), 15, o.eps)
  end)(value, m.u:read(), m.v:read())
  m.u:write(u)
  m.v:write(v)

  return function(...)
    local w, left, right = matrix(m.weight, o.dim), m.u, m.v
    if orrery.training() then
      left, right = iterated(w:stop_gradient(), left:updated(), right:updated(), o.iterations, o.eps)
      m.u:update(left)
      m.v:update(right)
    end
    return computed.call(layer, o.part, m.weight / (left * times(w, right)):sum(), ...)
  end
end)
