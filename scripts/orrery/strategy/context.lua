-- SPDX-License-Identifier: Apache-2.0
--
--- strategy.context(options)
--- Context parallelism: the ranks of an axis share every sequence, each works on a part of its places. Attention
--- of a part gathers all keys and values ("gathered"), trades places for heads ("ulysses"), or passes keys and values
--- round ("ring"). Equal to one process to rounding; EXACT with `chunks` and "ulysses".
---@param options? table
---@option size integer=0 ranks that share every sequence; 0: all that are left
---@option kind string='gathered' attention: "gathered", "ulysses" or "ring"
---@option fields string[]|string=nil batch fields [batch, time, ...]; left out, all that have two dims or more
---@option chunks integer=0 partial sums of every sum over places; 0: one a rank
---@return orrery.Strategy

-- Gathered: Grattafiori et al., "The Llama 3 Herd of Models", 2024 (arXiv:2407.21783), section 3.3.2. Ulysses:
-- Jacobs et al., "DeepSpeed Ulysses", 2023 (arXiv:2309.14509). Ring: strategy_ring.lua.
local orrery = require "orrery"
local places, ring = require "orrery.strategy_places", require "orrery.strategy_ring"

return orrery.strategy.define {
  name = "context", class = "approx",
  options = { size = 0, kind = { "gathered", "ulysses", "ring" }, fields = false, chunks = 0 },
  provides = "a context axis", conflicts = "a context axis",

  transform = function(draft, o)
    if o.kind == "ring" and o.chunks > 0 then
      orrery.fail(("strategy.context: chunks = %d: a ring merges attention by ranks, whatever the chunks: leave them out, or "
        .. "give kind = 'ulysses'"):format(o.chunks))
    end
    local ranks = draft:axis("context", o.size)
    if o.chunks > 0 then draft:chunk("context", o.chunks) end
    if ranks == 1 and o.chunks <= 1 then return end
    places.cut(draft, "strategy.context", "context", o.fields)
    if o.kind == "gathered" then return end
    if o.kind == "ring" then return ring.replace(draft, "strategy.context", "context", ranks) end
    for _, value in ipairs(draft:values "activation") do
      if value.op == "attention" and value.phase == "forward" then
        local inputs, attributes = draft:inputs(value), draft:maker(value).attributes
        -- Queries, keys and values: by heads. Few heads of keys and values are gathered, and each rank picks its own.
        local few = (attributes.kv_heads or 0) % math.max(ranks, o.chunks) ~= 0
        for i = 1, few and 1 or 3 do draft:place(inputs[i], "context", 3) end
      end
    end
  end,
}
