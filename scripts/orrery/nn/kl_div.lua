-- SPDX-License-Identifier: Apache-2.0
--
--- nn.kl_div(x, y, options)
--- Kullback-Leibler divergence of logarithms of probabilities x from probabilities y of the same shape: the mean of
--- y (log(y) - x) over all elements. As a divergence of rows it is "batchmean".
---@param x orrery.Tensor
---@param y orrery.Tensor
---@param options? table
---@option log_target boolean=false whether y are logarithms, too
---@option reduction string='mean' mean, sum, none, or batchmean: the sum of each sample, of which the mean
---@return orrery.Tensor
local _, orrery = ...
local losses = require "orrery.losses"
local spatial = require "orrery.nn.spatial"

local function of_samples(each)
  local dims = #each.shape
  return (dims > 1 and each:sum(spatial.range(2, dims)) or each):mean()
end

return function(x, y, options)
  local o = losses.options("kl_div", options, { log_target = false }, "batchmean")
  losses.alike("kl_div", x, y)
  x, y = losses.wide(x), losses.wide(y)
  local each
  if o.log_target then
    each = y:exp() * (y - x)
  else
    local some = y:gt(0) -- 0 log 0 is 0
    each = orrery.where(some, y * orrery.where(some, y, 1):log(), 0) - y * x
  end
  return o.reduction == "batchmean" and of_samples(each) or losses.reduced(each, o.reduction)
end
