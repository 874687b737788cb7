-- SPDX-License-Identifier: Apache-2.0
--
--- metrics.accuracy(scores, labels, options)
--- The share of labels that are predicted: of scores [..., classes] the class with the largest, of scores [...] 1 where
--- they are above the threshold. As a result of a loss function it is also that of a dataset, by run:eval.
---@param scores orrery.Tensor
---@param labels orrery.Tensor integers [...]
---@param options? table
---@option ignore integer=nil positions with this label do not count
---@option threshold number=0.5 of scores [...]: of probabilities; 0 for logits
---@return orrery.Tensor
local _, orrery = ...
local counts_of = require "orrery.metric_counts"

return function(scores, labels, options)
  local o = orrery.options("accuracy", options, { ignore = false, threshold = 0.5 })
  local predicted, known, counts = counts_of.predicted("accuracy", scores, labels, o)
  local right = predicted:eq(known:cast(predicted.dtype))
  if not counts then return right:cast("f32"):mean() end
  return counts_of.sum(right, counts) / counts:cast("f32"):sum()
end
