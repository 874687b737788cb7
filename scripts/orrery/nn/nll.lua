-- SPDX-License-Identifier: Apache-2.0
--
--- nn.nll(x, labels, options)
--- Negative log-likelihood: of logarithms of probabilities [..., classes], as of nn.log_softmax, the mean of -x at the
--- labels [...].
---@param x orrery.Tensor
---@param labels orrery.Tensor 0-based classes
---@param options? table
---@option weights orrery.Tensor=nil weight of each position; the mean is over the weights
---@option class_weights orrery.Tensor|number[]=nil weight of each class; a position has its label's
---@option ignore integer=nil positions with this label do not count
---@option reduction string='mean' mean, sum or none
---@return orrery.Tensor
local losses = require "orrery.losses"

return function(x, labels, options)
  local o = losses.options("nll", options, { weights = false, class_weights = false, ignore = false })
  return losses.at_labels("nll", losses.wide(x), labels, o, function(numbers, classes, of_classes)
    return -losses.of_labels(of_classes and losses.times(numbers, of_classes) or numbers, classes)
  end)
end
