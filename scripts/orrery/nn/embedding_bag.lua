-- SPDX-License-Identifier: Apache-2.0
--
--- nn.embedding_bag(count, dim, options)
--- Of ids [batch, n], the mean, sum or maximum of their rows of a table [count, dim]: [batch, dim].
---@param count integer
---@param dim integer
---@param options? table
---@option mode string='mean' mean, sum or max
---@option padding integer=nil an id that does not count; a bag of nothing else gives zeros
---@option init orrery.Initial=nn.init.normal(1) how the table begins
---@option dtype orrery.DType='f32'
---@return orrery.Module
local _, orrery = ...
local nn = orrery.nn

return nn.module("embedding_bag", function(m, count, dim, options)
  local o = orrery.options("embedding_bag", options, {
    mode = "mean", padding = false, init = nn.init.normal(1), dtype = "f32",
  })
  if o.mode ~= "mean" and o.mode ~= "sum" and o.mode ~= "max" then
    orrery.fail(("embedding_bag: mode = %q: give \"mean\", \"sum\" or \"max\""):format(tostring(o.mode)))
  end
  local dims = { count, dim }
  m.weight = orrery.parameter(dims, { init = nn.init.resolve(o.init, dims), dtype = o.dtype })
  return function(ids)
    local shape = ids.shape
    if #shape ~= 2 then orrery.fail(("embedding_bag: ids are %s, expected [batch, n]"):format(tostring(shape))) end
    local rows = m.weight:gather(ids)
    if not o.padding then
      return rows[o.mode](rows, 2)
    end
    local counts = ids:ne(o.padding):reshape(shape[1], shape[2], 1)
    local number = counts:cast(o.dtype):sum(2)
    if o.mode == "max" then
      return orrery.where(number:gt(0), orrery.where(counts, rows, -math.huge):max(2), 0)
    end
    local sum = orrery.where(counts, rows, 0):sum(2)
    return o.mode == "mean" and sum / number:maximum(1) or sum
  end
end)
