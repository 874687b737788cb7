-- SPDX-License-Identifier: Apache-2.0
--
--- strategy.powersgd(options)
--- Gradients of low rank: a matrix travels as two thin factors, found by one step of the power method from
--- those of the step before; what they miss waits for the next steps (error feedback). Vectors are summed
--- whole. APPROX.
---@param options? table
---@option rank integer=4 columns of the factors
---@option size integer=0 ranks that share the batch; 0: all that are left
---@return orrery.Strategy

-- Vogels, Karimireddy and Jaggi, "PowerSGD", NeurIPS 2019 (arXiv:1905.13727), algorithms 1 and 2.
local orrery = require "orrery"

-- The dims of a tensor as a matrix, and the rank of its factors; nothing if that would send more.
local function factors(shape, o)
  if #shape < 2 then return end
  local rows, columns = shape[1], 1
  for i = 2, #shape do columns = columns * shape[i] end
  local rank = math.min(o.rank, rows, columns)
  if rank * (rows + columns) < rows * columns then return rows, columns, rank end
end

-- Columns of length 1, and the others where a column is 0.
local function unit(m, others)
  local length = m:sumsq(1, { keep = true }):sqrt()
  return orrery.where(length:gt(1e-15), m / length, others)
end

local function without(c, columns)
  for _, known in ipairs(columns) do c = c - known * (known * c):sum(1, { keep = true }) end
  return c
end

-- Orthogonal columns of length 1, made one after another (Gram and Schmidt), each twice: if little is left of one, its
-- rounding error is not orthogonal to the others, and what these stand for would be sent twice. If nothing is left, 0.
local function orthogonal(m)
  local columns = {}
  for k = 1, m.shape[2] do
    local zero = orrery.zeros_like(m:slice(2, k, k))
    local c = without(unit(without(m:slice(2, k, k), columns), zero), columns)
    columns[k] = orrery.where(c:sumsq(1, { keep = true }):gt(0.01), unit(c, zero), zero)
  end
  return orrery.concat(columns, 2)
end

return orrery.strategy.define {
  name = "powersgd", class = "approx",
  options = { rank = 4, size = 0 },
  states = {
    residual = { init = "zeros", varying = true, leave = "sum" },
    q = { init = "normal", shape = function(shape, o)
      local _, columns, rank = factors(shape, o)
      return columns and { columns, rank } or false
    end },
  },
  exchange = function(g, s, o, axis)
    local rows, columns = factors(g.shape, o)
    if not rows then return g:all_reduce(axis) end
    local m = (g + s.residual):reshape(rows, columns)
    local p = orthogonal((m:matmul(s.q)):all_reduce(axis))
    local q = p:transpose(1, 2):matmul(m):transpose(1, 2)
    s.residual = (m - p:matmul(q:transpose(1, 2))):reshape(g.shape)
    q = q:all_reduce(axis)
    -- The length of a factor is the gradient's: the factors of small gradients would vanish in a few steps. And from 0
    -- the power method never comes back: where the gradient is 0, the next step begins with what this one began with.
    s.q = unit(q, s.q)
    return p:matmul(q:transpose(1, 2)):reshape(g.shape)
  end,
}
