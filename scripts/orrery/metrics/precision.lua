-- SPDX-License-Identifier: Apache-2.0
--
--- metrics.precision(scores, labels, options)
--- Of what is predicted to be of a class, the share that is; 0 where nothing is predicted. Of scores
--- [...] that of label 1. As a result of a loss function it is also that of a dataset, by run:eval.
---@param scores orrery.Tensor
---@param labels orrery.Tensor integers [...]
---@param options? table
---@option average string='macro' of several classes: 'macro': the mean over those that occur; 'micro': all as one;
--- 'none': [classes]
---@option ignore integer=nil positions with this label do not count
---@option threshold number=0.5 of scores [...]: of probabilities; 0 for logits
---@return orrery.Tensor
local score = require "orrery.metric_counts".score

return function(scores, labels, options)
  return score("precision", scores, labels, options, function(right, predicted) return right, predicted end)
end
