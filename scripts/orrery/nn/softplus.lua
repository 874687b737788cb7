-- SPDX-License-Identifier: Apache-2.0
--
--- nn.softplus(x, options)
--- log(1 + exp(beta x)) / beta, as a function to put into nn.sequential.
---@param x orrery.Tensor
---@param options? table
---@option beta number=1
---@return orrery.Tensor
local _, orrery = ...
local at_least = require "orrery.losses".at_least
local in_single = require "orrery.in_single"
local softplus = require "orrery.elementary".softplus

return in_single(function(x, options)
  local o = orrery.options("softplus", options, { beta = 1 })
  at_least("softplus", "beta", o.beta, 0, true)
  return o.beta == 1 and softplus(x) or softplus(x * o.beta) / o.beta
end)
