-- SPDX-License-Identifier: Apache-2.0
--
--- optim.adafactor(options)
--- Adafactor (Shazeer and Stern, 2018): of a matrix it keeps means of squared gradients of rows and columns only. Steps are
--- parts of the size of the parameter. Of more than two dims the last two are matrices.
---@param options? table
---@option lr number|orrery.Schedule=0.01 the largest step, as a part of the parameter's size; 1 / sqrt(n) with the n-th update
---@option b2_decay number|orrery.Schedule=-0.8 the n-th update has the weight n^b2_decay in the means
---@option eps number|orrery.Schedule=1e-3 the least size that a parameter counts as
---@option clip number|orrery.Schedule=1 the largest root mean square of a direction
---@option decay number|orrery.Schedule=0 of the weights themselves
---@option groups table={} {{match =, frozen =, clip_norm =, clip_value =, optimizer = or any option =}, ...}: the first that matches counts; match is a pattern of paths, a function of the parameter or a list of them
---@return orrery.Optimizer
local _, orrery = ...

local function elements(x)
  local count = 1
  for _, dim in ipairs(x.shape) do count = count * dim end
  return count
end

local function rms(x) return (x:sumsq() / elements(x)):sqrt() end

-- The dims of the state that has a number for each row or column; nil of what is no matrix.
local function without(dim)
  return function(dims)
    if #dims < 2 then return nil end
    local left = { table.unpack(dims) }
    left[#dims + 1 + dim] = 1
    return left
  end
end

local function moved(mean, to, weight) return mean + (to - mean) * weight end

-- The mean of squared gradients as far as it is known, and the new states.
local function squares(g, s, weight, least)
  if not s.row then
    local v = moved(s.v, g * g, weight)
    return v, { v = v }
  end
  local rows, columns = g.shape[-2], g.shape[-1]
  local row = moved(s.row, g:sumsq(-1, { keep = true }) / columns, weight)
  local column = moved(s.column, g:sumsq(-2, { keep = true }) / rows, weight)
  return row * column / row:mean(-2, { keep = true }):maximum(least), { row = row, column = column }
end

return orrery.optim.define("adafactor", {
  options = { lr = 0.01, b2_decay = -0.8, eps = 1e-3, clip = 1, decay = 0 },
  states = { "row", "column", "v" }, counted = true,
  shapes = { row = without(-1), column = without(-2), v = function(dims) return #dims < 2 and dims or nil end },
  update = function(p, g, s, o)
    local least = p.dtype == "f64" and 2 ^ -52 or 2 ^ -23
    local square, states = squares(g, s, o.count:pow(o.b2_decay), least)
    local direction = g * square:maximum(least * least):rsqrt()
    local rate = o.count:rsqrt():minimum(o.lr) * rms(p):maximum(o.eps)
    if o.decay ~= 0 then p = p - p * o.lr * o.decay end
    return p - direction * (rate / (rms(direction) / o.clip):maximum(1)), states
  end,
})
