-- SPDX-License-Identifier: Apache-2.0
--
--- nn.attention(q, k, v, options)
--- Multi-head attention of [batch, time, heads * d] tensors: orrery.attention by its other name, with its options
--- heads, kv_heads, causal, scale, dropout, mask, bias, window and offset.
---@param q orrery.Tensor
---@param k orrery.Tensor
---@param v orrery.Tensor
---@param options? table as orrery.attention takes them
---@return orrery.Tensor
local _, orrery = ...

return orrery.attention
