-- SPDX-License-Identifier: Apache-2.0
--
--- nn.embedding(count, dim, options)
--- Rows of a table [count, dim] by 0-based ids of any shape.
---@param count integer
---@param dim integer
---@param options? table
---@option init orrery.Initial=nn.init.normal(0.02) how the table begins
---@option dtype orrery.DType='f32'
---@return orrery.Module
local _, orrery = ...
local nn = orrery.nn

return nn.module("embedding", function(m, count, dim, options)
  local o = orrery.options("embedding", options, { init = nn.init.normal(0.02), dtype = "f32" })
  local dims = { count, dim }
  m.weight = orrery.parameter(dims, { init = nn.init.resolve(o.init, dims), dtype = o.dtype })
  return function(ids) return m.weight:gather(ids) end
end)
