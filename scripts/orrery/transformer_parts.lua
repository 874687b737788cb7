-- SPDX-License-Identifier: Apache-2.0
--
-- What nn.transformer_encoder_layer and nn.transformer_decoder_layer share: parts named as PyTorch's, and sums with norms
-- before or after them.
local _, orrery = ...
local nn = orrery.nn
local M = {}

function M.options(kind, given)
  return orrery.options(kind, given, {
    hidden = 2048, dropout = 0.1, act = nn.relu, eps = 1e-5, norm_first = false, bias = true, dtype = "f32",
  })
end

function M.attention(dim, heads, o)
  return nn.multihead_attention(dim, heads, { bias = o.bias, dropout = o.dropout, dtype = o.dtype })
end

-- A table that a layer is called with, which says what is seen.
function M.seen(kind, given)
  if given ~= nil and orrery.type(given) ~= "table" then
    orrery.fail(("%s: %s given, expected a table such as {causal = true} or {mask = mask}"):format(kind, orrery.type(given)))
  end
  return given or {}
end

-- Gives m the two layers of the network and `count` norms.
function M.add(m, dim, o, count)
  m.linear1 = nn.linear(dim, o.hidden, { bias = o.bias, dtype = o.dtype })
  m.linear2 = nn.linear(o.hidden, dim, { bias = o.bias, dtype = o.dtype })
  for i = 1, count do m["norm" .. i] = nn.layernorm(dim, { eps = o.eps, bias = o.bias, dtype = o.dtype }) end
end

-- x and what the i-th part makes of it, f(x), with the i-th norm.
function M.sum(m, i, x, o, f)
  local norm = m["norm" .. i]
  if o.norm_first then return x + orrery.dropout(f(norm(x)), o.dropout) end
  return norm(x + orrery.dropout(f(x), o.dropout))
end

function M.network(m, o)
  return function(x) return m.linear2(orrery.dropout(o.act(m.linear1(x)), o.dropout)) end
end

return M
