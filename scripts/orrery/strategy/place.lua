-- SPDX-License-Identifier: Apache-2.0
--
--- strategy.place(options)
--- Modules placed on ranks by hand: whole layers on one rank after another, or the halves of a layer on
--- two ranks that meet where the model says (Krizhevsky et al., NIPS 2012). EXACT. Microbatches go one at
--- a time; strategy.pipeline keeps several on their way.
---@param options table
---@option modules table|string the modules of each part: {"a", {"b", "c"}}; required
---@option ranks integer[]|string=false the rank of each part; left out, one after another
---@return orrery.Strategy
local orrery = require "orrery"

-- "a;b" or { "a", { "b", "c" } }, the modules of each part, as a list of texts.
local function parts_of(modules)
  local parts = {}
  if type(modules) == "string" then
    for part in modules:gmatch "[^;]+" do parts[#parts + 1] = part end
  else
    for i, part in ipairs(modules or {}) do
      parts[i] = type(part) == "table" and table.concat(part, ",") or part
    end
  end
  if #parts == 0 then orrery.fail "modules is missing: the modules of each part" end
  return parts
end

-- The rank of each part, and how many ranks there are.
local function ranks_of(o, parts)
  local where, ranks, used = {}, 0, {}
  local given = o.ranks or nil
  if type(given) == "string" then
    local list = {}
    for word in given:gmatch "[^,]+" do list[#list + 1] = math.tointeger(tonumber(word)) or -1 end
    given = list
  end
  for i = 1, #parts do
    local rank = i - 1
    if given then rank = given[i] end
    if math.type(rank) ~= "integer" or rank < 0 or (given and #given ~= #parts) then
      orrery.fail(("ranks has %d entries for %d parts; give each part a rank from 0"):format(
        #given, #parts))
    end
    where[i], used[rank], ranks = rank, true, math.max(ranks, rank + 1)
  end
  for rank = 0, ranks - 1 do
    if not used[rank] then
      orrery.fail(("rank %d gets no part; number ranks without holes"):format(rank))
    end
  end
  return where, ranks
end

return orrery.strategy.define {
  name = "place", class = "exact",
  options = {
    modules = false, -- modules of each part, in the order of their use: { "left.1", "right.1", "join" }
    ranks = false,   -- the rank of each part: { 0, 1, 0 }; left out, part after part
  },
  provides = "an order of microbatches,stages", conflicts = "an order of microbatches,stages",

  transform = function(draft, o)
    local parts = parts_of(o.modules)
    local where, ranks = ranks_of(o, parts)
    draft:axis("place", ranks)
    draft:stage("place", where, parts)
  end,

  -- Of the rank's chunks, first to last forward and last to first backward, microbatch after microbatch.
  schedule = function(stage, _, leaves, o)
    local mine = 0
    for _, rank in ipairs((ranks_of(o, parts_of(o.modules)))) do mine = mine + (rank == stage and 1 or 0) end
    local cells = {}
    for leaf = 0, leaves - 1 do
      for k = 0, mine - 1 do cells[#cells + 1] = ("F%d:%d"):format(leaf, k) end
      for k = mine - 1, 0, -1 do cells[#cells + 1] = ("B%d:%d"):format(leaf, k) end
    end
    return cells
  end,

  -- A message is sent once; who receives it sends nothing.
  predict = function(q) return q.op == "send" and q.elements * q.element_bytes or 0 end,
}
