-- SPDX-License-Identifier: Apache-2.0
--
--- nn.transformer_encoder_layer(dim, heads, options)
--- Self-attention and a network of two layers, each added to what came in. Called with x [batch, time, dim] and perhaps a
--- table of `causal`, `mask`, `bias` and `window` as orrery.attention takes them. Parameters are named and laid out as
--- PyTorch's.
---@param dim integer
---@param heads integer a divisor of dim
---@param options? table
---@option hidden integer=2048 the width between the two layers of the network
---@option dropout number=0.1 in training
---@option act fun(x):orrery.Tensor=nn.relu between these layers; PyTorch's "gelu" is nn.gelu_exact
---@option eps number=1e-5 of the norms
---@option norm_first boolean=false norms before the parts instead of after the sums
---@option bias boolean=true
---@option dtype orrery.DType='f32'
---@return orrery.Module

-- Vaswani et al., "Attention Is All You Need", 2017 (arXiv:1706.03762).
local _, orrery = ...
local parts = require "orrery.transformer_parts"

return orrery.nn.module("transformer_encoder_layer", function(m, dim, heads, options)
  local o = parts.options("transformer_encoder_layer", options)
  m.self_attn = parts.attention(dim, heads, o)
  parts.add(m, dim, o, 2)
  local network = parts.network(m, o)
  return function(x, seen)
    seen = parts.seen("transformer_encoder_layer", seen)
    x = parts.sum(m, 1, x, o, function(y) return m.self_attn(y, seen) end)
    return parts.sum(m, 2, x, o, network)
  end
end)
