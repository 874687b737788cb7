-- SPDX-License-Identifier: Apache-2.0
--
--- nn.attention(q, k, v, options)
--- Multi-head attention of [batch, time, heads * d] tensors: orrery.attention by its other name.
---@param q orrery.Tensor
---@param k orrery.Tensor
---@param v orrery.Tensor
---@param options? table {heads =, causal =, scale =, dropout =} as orrery.attention takes them
---@return orrery.Tensor
local _, orrery = ...

return orrery.attention
