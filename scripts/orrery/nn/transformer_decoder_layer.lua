-- SPDX-License-Identifier: Apache-2.0
--
--- nn.transformer_decoder_layer(dim, heads, options)
--- Self-attention, attention to what an encoder made, and a network of two layers, each added to what came in. Called with
--- x [batch, time, dim], what the encoder made [batch, length, dim], and perhaps a table of `causal`, `mask`, `bias` and
--- `window` of the self-attention, and another one of the attention to the encoder's. Parameters are named and laid out as
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

return orrery.nn.module("transformer_decoder_layer", function(m, dim, heads, options)
  local o = parts.options("transformer_decoder_layer", options)
  m.self_attn, m.multihead_attn = parts.attention(dim, heads, o), parts.attention(dim, heads, o)
  parts.add(m, dim, o, 3)
  local network = parts.network(m, o)
  local kind = "transformer_decoder_layer"
  return function(x, memory, seen, seen_of_memory)
    if orrery.type(memory) ~= "Tensor" and orrery.type(memory) ~= "State" then
      orrery.fail(("%s: %s given as second argument, expected what the encoder made"):format(kind, orrery.type(memory)))
    end
    seen, seen_of_memory = parts.seen(kind, seen), parts.seen(kind, seen_of_memory)
    x = parts.sum(m, 1, x, o, function(y) return m.self_attn(y, seen) end)
    x = parts.sum(m, 2, x, o, function(y) return m.multihead_attn(y, memory, seen_of_memory) end)
    return parts.sum(m, 3, x, o, network)
  end
end)
