-- SPDX-License-Identifier: Apache-2.0
--
-- nn.attention(q, k, v, {heads =, causal =, scale =, dropout =}): of [batch, time, heads * d] tensors.
local _, orrery = ...

return orrery.attention
