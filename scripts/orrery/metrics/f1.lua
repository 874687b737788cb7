-- SPDX-License-Identifier: Apache-2.0
--
--- metrics.f1(scores, labels, options)
--- The harmonic mean of precision and recall of a class; 0 where both are. Of scores [...] that of label 1.
--- As a result of a loss function it is also that of a dataset, by run:eval.
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
  return score("f1", scores, labels, options, function(right, predicted, there) return right * 2, predicted + there end)
end
