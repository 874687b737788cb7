-- SPDX-License-Identifier: Apache-2.0
--
--- nn.softmax(x, options)
--- Softmax of a dim, as a function to put into nn.sequential.
---@param x orrery.Tensor
---@param options? table
---@option dim integer=-1
---@return orrery.Tensor
local _, orrery = ...
local along = require "orrery.along"

return function(x, options)
  local o = orrery.options("softmax", options, { dim = -1 })
  return along(x, o.dim, function(rows) return rows:softmax() end)
end
