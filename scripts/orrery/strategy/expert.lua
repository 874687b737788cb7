-- SPDX-License-Identifier: Apache-2.0
--
--- strategy.expert(options)
--- Expert parallelism: the ranks of an axis share every sequence, as with strategy.context, or the batch, as with
--- strategy.data, and each holds a part of the experts. Tokens travel to their experts and back by two all_to_alls.
--- Equal to one process to rounding; EXACT with `chunks`, or `over` the batch.
---@param options? table
---@option size integer=0 ranks that share the experts; 0: all that are left
---@option over string="time" what they share beside: "time", that of every sequence, or "batch", the samples
---@option fields string[]|string=nil batch fields [batch, time, ...]; left out, all that have two dims or more
---@option chunks integer=0 partial sums of every sum over places; 0: one a rank
---@return orrery.Strategy

-- Fedus, Zoph, Shazeer, "Switch Transformers", JMLR 2022 (arXiv:2101.03961); Lepikhin et al., "GShard" (arXiv:2006.16668).
local orrery = require "orrery"
local places = require "orrery.strategy_places"

-- Products of tokens [experts, n, width], or of their gradients, with a parameter of one matrix an expert, which may
-- be cast first; and of rows that choose among these matrices, which have no place of an expert's.
local function experts_of(draft)
  local parameters, by_id, found = {}, {}, {}
  for _, value in ipairs(draft:values "param") do
    if #value.dims == 3 then parameters[value.id] = value end
  end
  local activations = draft:values "activation"
  for _, value in ipairs(activations) do by_id[value.id] = value end
  local function bare(id)
    local value = by_id[id]
    return value and value.op == "pointwise" and parameters[draft:inputs(id)[1]] and draft:inputs(id)[1] or id
  end
  for _, value in ipairs(activations) do
    local choose = value.op == "gather_matmul"
    if choose or value.op == "matmul" and #value.dims == 3 then
      local inputs = draft:inputs(value)
      local matrices = parameters[bare(inputs[2])]
      if matrices then found[#found + 1] = { tokens = not choose and inputs[1], matrices = matrices } end
    end
  end
  return found
end

-- As strategy.data does.
local function deal(draft)
  for _, field in ipairs(draft:values "batch") do draft:place(field, "expert", 1) end
  for _, gradient in ipairs(draft:values "grad") do draft:reduce(gradient, "expert") end
end

return orrery.strategy.define {
  name = "expert", class = "approx",
  options = { size = 0, over = { "time", "batch" }, fields = false, chunks = 0 },
  provides = "an expert axis", conflicts = "an expert axis",

  transform = function(draft, o)
    if o.over == "batch" and (o.chunks > 0 or o.fields) then
      orrery.fail "strategy.expert: over the batch no time is cut: leave `chunks` and `fields` out"
    end
    local ranks = draft:axis("expert", o.size)
    if o.over == "batch" then deal(draft) end
    if o.chunks > 0 then draft:chunk("expert", o.chunks) end
    if ranks == 1 and o.chunks <= 1 then return end
    local products, parts = experts_of(draft), math.max(ranks, o.chunks)
    if #products == 0 then
      orrery.fail "strategy.expert: no product has one matrix for each expert, a parameter of three dims, as nn.switch has"
    end
    for _, product in ipairs(products) do
      local experts = product.matrices.dims[1]
      if experts % parts ~= 0 then
        orrery.fail(("strategy.expert: '%s' has %d experts, which do not divide over %d %s"):format(
          product.matrices.name, experts, parts, parts > ranks and "chunks" or "ranks"))
      end
      draft:place(product.matrices, "expert", 1)
      if product.tokens then draft:place(product.tokens, "expert", 1) end
    end
    if o.over == "time" then places.cut(draft, "strategy.expert", "expert", o.fields) end
  end,
}
