-- SPDX-License-Identifier: Apache-2.0
--
--- nn.log_softmax(x, options)
--- The logarithm of the softmax of a dim, as a function to put into nn.sequential.
---@param x orrery.Tensor
---@param options? table
---@option dim integer=-1
---@return orrery.Tensor
local _, orrery = ...
local along = require "orrery.along"
local in_single = require "orrery.in_single"
local log_softmax = in_single(require "orrery.elementary".log_softmax)

return function(x, options)
  local o = orrery.options("log_softmax", options, { dim = -1 })
  return along(x, o.dim, log_softmax)
end
