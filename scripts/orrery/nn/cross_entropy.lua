-- SPDX-License-Identifier: Apache-2.0
--
--- nn.cross_entropy(logits, labels, options)
--- Cross-entropy of logits [..., classes] and labels: 0-based classes [...], or real numbers [..., classes], the
--- probability of each. The mean is over all positions that count; of labels that are classes, over their weights.
---@param logits orrery.Tensor
---@param labels orrery.Tensor
---@param options? table
---@option weights orrery.Tensor=nil weight of each position; the mean is over the weights
---@option class_weights orrery.Tensor|number[]=nil weight of each class; a position has its label's
---@option ignore integer=nil positions with this label do not count; the mean of none is NaN
---@option label_smoothing number=0 how much of each label all classes share
---@option reduction string='mean' mean, sum or none
---@return orrery.Tensor

-- Labels are smoothed as by Szegedy et al., 2016 (arXiv:1512.00567).
local _, orrery = ...
local losses = require "orrery.losses"
local log_softmax = require "orrery.elementary".log_softmax

-- Of labels that are probabilities.
local function soft(logits, labels, o)
  if o.ignore then orrery.fail "cross_entropy: ignore is a class, and labels are probabilities here: give weights" end
  losses.alike("cross_entropy", logits, labels, "logits and labels")
  local share = o.label_smoothing
  if share > 0 then labels = labels * (1 - share) + share / logits.shape[-1] end
  local logs, of_classes = log_softmax(logits), losses.class_weights("cross_entropy", logits, o.class_weights)
  if of_classes then logs = losses.times(logs, of_classes) end
  local each = -(logs * labels):sum(-1)
  if not o.weights then return losses.reduced(each, o.reduction) end
  return losses.weighted("cross_entropy", each, o.weights, o.reduction)
end

return function(logits, labels, options)
  local o = losses.options("cross_entropy", options,
    { weights = false, class_weights = false, ignore = false, label_smoothing = 0 })
  local share = o.label_smoothing
  if not (share >= 0 and share <= 1) then
    orrery.fail(("cross_entropy: label_smoothing = %g is not in [0, 1]"):format(share))
  end
  if labels.dtype:find "f" and #labels.shape < #logits.shape then
    return orrery.cross_entropy(logits, labels) -- which says that classes are integers
  end
  if labels.dtype:find "f" then return soft(losses.wide(logits), losses.wide(labels), o) end
  if share == 0 and o.reduction == "mean" and not o.class_weights then
    return orrery.cross_entropy(logits, labels, { weights = o.weights or nil, ignore = o.ignore or nil })
  end
  return losses.at_labels("cross_entropy", losses.wide(logits), labels, o, function(numbers, classes, of_classes)
    local logs = log_softmax(numbers)
    if of_classes then logs = losses.times(logs, of_classes) end
    local each = -losses.of_labels(logs, classes)
    return share == 0 and each or each * (1 - share) - logs:mean(-1) * share
  end)
end
