-- SPDX-License-Identifier: Apache-2.0
--
--- nn.cross_entropy(logits, labels, options)
--- The mean over all positions that count: orrery.cross_entropy by its other name.
---@param logits orrery.Tensor
---@param labels orrery.Tensor 0-based classes
---@param options? table {weights =, ignore =} as orrery.cross_entropy takes them
---@return orrery.Tensor
local _, orrery = ...

return orrery.cross_entropy
