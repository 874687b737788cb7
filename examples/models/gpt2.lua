-- SPDX-License-Identifier: Apache-2.0
--
-- GPT-2, and where its tensors are in files of Hugging Face's transformers.
local orrery = require "orrery"
local nn = orrery.nn

local weight = nn.init.normal(0.02)

local Block = nn.module("Block", function(m, c)
  local into_residual = nn.init.normal(0.02 / math.sqrt(2 * c.layers))
  m.ln1, m.ln2 = nn.layernorm(c.dim), nn.layernorm(c.dim)
  m.qkv = nn.linear(c.dim, { c.dim, c.dim, c.dim }, { init = weight })
  m.proj = nn.linear(c.dim, c.dim, { init = into_residual })
  m.mlp = nn.sequential {
    nn.linear(c.dim, 4 * c.dim, { init = weight }), nn.gelu,
    nn.linear(4 * c.dim, c.dim, { init = into_residual }),
  }
  return function(x)
    local q, k, v = m.qkv(m.ln1(x))
    x = x + m.proj(nn.attention(q, k, v, { heads = c.heads, causal = true }))
    return x + m.mlp(m.ln2(x))
  end
end)

-- c: vocab, positions, dim, heads, layers.
local model = nn.module("GPT2", function(m, c)
  m.tok, m.pos = nn.embedding(c.vocab, c.dim), nn.embedding(c.positions, c.dim)
  m.blocks = nn.sequential(c.layers, function() return Block(c) end)
  m.norm = nn.layernorm(c.dim)
  m.head = nn.linear(c.dim, c.vocab, { bias = false, tie = m.tok.weight })
  return function(ids)
    local x = m.tok(ids) + m.pos(orrery.iota(ids.shape[-1]))
    return m.head(m.norm(m.blocks(x)))
  end
end)

local parts = {
  wte = "tok", wpe = "pos", ln_f = "norm", ln_1 = "ln1", ln_2 = "ln2", ["attn.c_attn"] = "qkv", ["attn.c_proj"] = "proj",
  ["mlp.c_fc"] = "mlp.1", ["mlp.c_proj"] = "mlp.3",
}

-- For load_weights: "transformer.h.0.attn.c_attn.weight" is "blocks.1.qkv.weight" transposed. The head is tied and the
-- masks of old files (attn.bias) are made anew: both are left out.
local function from_transformers(name)
  local layer, part, kind = name:gsub("^transformer%.", ""):match "^(h?%.?%d*)%.?(.-)%.(%l+)$"
  local known = parts[part]
  if not known then return nil end
  local number = layer:match "%d+"
  local path = number and ("blocks.%d.%s"):format(number + 1, known) or known
  return ("%s.%s"):format(path, kind), kind == "weight" and part:find "c_" ~= nil
end

return { model = model, from_transformers = from_transformers }
