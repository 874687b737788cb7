-- SPDX-License-Identifier: Apache-2.0
--
-- Parameters of which each rank has a shard, gathered unit by unit: before the op of forward that first reads one of a
-- unit's parameters, and again for backward. fsdp.lua and zeropp.lua say how a unit is gathered.

-- The ops of forward and backward in their order, each as one of the values that it makes.
local function ops_of(draft)
  local ops, seen = {}, {}
  for _, role in ipairs { "activation", "grad", "loss", "scalar" } do
    for _, value in ipairs(draft:values(role)) do
      if value.maker >= 0 and value.runs ~= "update" and not seen[value.maker] then
        seen[value.maker] = true
        ops[#ops + 1] = value
      end
    end
  end
  table.sort(ops, function(a, b) return a.maker < b.maker end)
  return ops
end

-- The gatherings of each phase, in the order of the program: {unit =, phase =, op = the first op that reads the unit,
-- reads = {{op, value, parameter}, ...}, readers = the first op of each chunk of the model that reads each parameter}.
-- Where microbatches gather for themselves, each chunk has its own. What backward reads of a cast, it casts again.
local function uses_of(draft, unit_of, o)
  local lists, by_key, ever, casts = {}, {}, {}, {}
  local function at(t, key, default)
    t[key] = t[key] or default or {}
    return t[key]
  end
  for _, op in ipairs(ops_of(draft)) do
    local inputs, seen = draft:inputs(op), {}
    for _, value in ipairs(inputs) do
      local id = unit_of[value] and value or op.runs == "backward" and casts[value]
      if id and not seen[value] then -- what is read several times is replaced once
        seen[value] = true
        local chunk = o.each and op.chunk or 0
        local place, unit = op.runs .. chunk, chunk .. "/" .. unit_of[id]
        if not lists[place] then lists[#lists + 1] = at(lists, place) end
        at(at(ever, unit), id, { [op.chunk] = op })
        local key = place .. "/" .. unit
        if not by_key[key] then
          by_key[key] = { unit = unit, phase = op.runs, op = op, reads = {}, readers = {}, ever = ever[unit] }
          table.insert(lists[place], by_key[key])
        end
        table.insert(by_key[key].reads, { op, value, id })
        at(at(by_key[key].readers, id), op.chunk, op)
      end
    end
    if o.reshard and op.runs == "forward" and unit_of[inputs[1]] and draft:maker(op).fn == "cast" then
      casts[op.id] = inputs[1]
    end
  end
  return lists
end

-- Has every unit gathered `o.prefetch` units before it is read, in backward again if `o.reshard`.
local function write_gathers(draft, params, unit_of, o, gather)
  local held, group = {}, 0
  for _, list in ipairs(uses_of(draft, unit_of, o)) do
    for i, use in ipairs(list) do
      if o.reshard or not held[use.unit] then
        group, held[use.unit] = group + 1, {}
        for _, p in ipairs(params) do
          held[use.unit][p.id] = {}
          -- A parameter belongs to where it is read, in this phase if it is.
          for chunk, reader in pairs(use.readers[p.id] or use.ever[p.id] or {}) do
            draft:beside(reader, use.phase)
            draft:before(list[math.max(1, i - o.prefetch)].op)
            held[use.unit][p.id][chunk] = gather(draft, p, group)
          end
        end
      end
      draft:before(nil)
      local again = {}
      for _, read in ipairs(use.reads) do
        local op, value, p = table.unpack(read)
        local whole = held[use.unit][p][op.chunk]
        if value ~= p then
          draft:beside(op, use.phase)
          again[value] = again[value] or draft:copy(value, use.phase, { whole })
        end
        draft:reread(op, value, value == p and whole or again[value])
      end
    end
  end
end

-- What travels together: an element of a list of modules ("blocks.1"), or all the rest of the model.
local function unit_name(parameter) return parameter:match "^(.-%.%d+)%." or "" end

--- Cuts all parameters over the ranks that share the batch, and writes where they are gathered.
---@param draft orrery.Draft
---@param o table prefetch, reshard, each; rows: each parameter is cut by itself, between its rows
---@param gather fun(draft:orrery.Draft,p:orrery.Value,group:integer):orrery.Tensor what stands for a parameter where
--- it is read; `group` is the number of the gathering, of which all members travel in one exchange
return function(draft, o, gather)
  local params, unit_of, numbers, n = {}, {}, {}, 0
  for _, p in ipairs(draft:values "param") do
    local unit = unit_name(p.name)
    if not numbers[unit] then numbers[unit], n = n, n + 1 end
    if #p.dims > 0 then
      draft:shard(p, { what = "param", axis = "batch", unit = o.rows and #params or numbers[unit], each = o.each,
        rows = o.rows })
      params[#params + 1], unit_of[p.id] = p, numbers[unit]
    end
  end
  draft:at_last(function(step) write_gathers(step, params, unit_of, o, gather) end)
end
