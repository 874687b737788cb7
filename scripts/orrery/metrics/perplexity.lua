-- SPDX-License-Identifier: Apache-2.0
--
--- metrics.perplexity(logits, labels, options)
--- exp of the mean cross-entropy over all positions that count. As a result of a loss function it is also that of a
--- dataset, by run:eval: exp of the mean, not the mean of exp.
---@param logits orrery.Tensor
---@param labels orrery.Tensor integers [...]
---@param options? table
---@option ignore integer=nil positions with this label do not count
---@return orrery.Tensor
local _, orrery = ...

return function(logits, labels, options)
  local o = orrery.options("perplexity", options, { ignore = false })
  return orrery.nn.cross_entropy(logits, labels, { ignore = o.ignore or nil }):exp()
end
