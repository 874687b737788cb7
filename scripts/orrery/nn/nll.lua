-- SPDX-License-Identifier: Apache-2.0
--
--- nn.nll(x, labels, options)
--- Negative log-likelihood: of logarithms of probabilities [..., classes], as of nn.log_softmax, the mean of -x at the
--- labels [...].
---@param x orrery.Tensor
---@param labels orrery.Tensor 0-based classes
---@param options? table
---@option weights orrery.Tensor=nil weight of each position, of classes w:take(labels); the mean is over the weights
---@option ignore integer=nil positions with this label do not count
---@option reduction string='mean' mean, sum or none
---@return orrery.Tensor
local losses = require "orrery.losses"

return function(x, labels, options)
  local o = losses.options("nll", options, { weights = false, ignore = false })
  return losses.at_labels("nll", losses.wide(x), labels, o, function(numbers, classes)
    return -losses.of_labels(numbers, classes)
  end)
end
