-- SPDX-License-Identifier: Apache-2.0
--
-- Parameters that lie in pieces, and are gathered unit by unit: before the op of forward that first reads one of a unit's
-- parameters, and again for backward. fsdp.lua and zeropp.lua say how a unit is gathered.

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
-- reads = {{op, parameter}, ...}, readers = the first op that reads each parameter}. Where microbatches gather for
-- themselves, each chunk of the model has its own.
local function uses_of(draft, unit_of, each)
  local lists, by_key, ever = {}, {}, {}
  for _, op in ipairs(ops_of(draft)) do
    for _, id in ipairs(draft:inputs(op)) do
      if unit_of[id] then
        local chunk = each and op.chunk or 0
        local place, unit = op.runs .. chunk, chunk .. "/" .. unit_of[id]
        local key = place .. "/" .. unit
        if not lists[place] then
          lists[place] = {}
          lists[#lists + 1] = lists[place]
        end
        ever[unit] = ever[unit] or {}
        ever[unit][id] = ever[unit][id] or op
        if not by_key[key] then
          by_key[key] = { unit = unit, phase = op.runs, op = op, reads = {}, readers = {}, ever = ever[unit] }
          table.insert(lists[place], by_key[key])
        end
        local use = by_key[key]
        table.insert(use.reads, { op, id })
        use.readers[id] = use.readers[id] or op
      end
    end
  end
  return lists
end

-- Has every unit gathered `o.prefetch` units before it is read, in backward again if `o.reshard`.
local function write_gathers(draft, params, unit_of, o, gather)
  local held, group = {}, 0
  for _, list in ipairs(uses_of(draft, unit_of, o.each)) do
    for i, use in ipairs(list) do
      if o.reshard or not held[use.unit] then
        group, held[use.unit] = group + 1, {}
        for _, p in ipairs(params) do
          local reader = use.readers[p.id] or use.ever[p.id] -- the parameter belongs to where it is read
          if reader then
            draft:beside(reader, use.phase)
            draft:before(list[math.max(1, i - o.prefetch)].op)
            held[use.unit][p.id] = gather(draft, p, group)
          end
        end
      end
      for _, read in ipairs(use.reads) do draft:reread(read[1], read[2], held[use.unit][read[2]]) end
    end
  end
end

-- What travels together: an element of a list of modules ("blocks.1"), or all the rest of the model.
local function unit_name(parameter) return parameter:match "^(.-%.%d+)%." or "" end

--- Cuts all parameters over the ranks that share the batch, and writes where they are gathered.
---@param draft orrery.Draft
---@param o table prefetch, reshard, each
---@param gather fun(draft:orrery.Draft,p:orrery.Value,group:integer):orrery.Tensor what stands for a parameter where
--- it is read; `group` is the number of the gathering, of which all members travel in one exchange
return function(draft, o, gather)
  local params, unit_of, numbers, n = {}, {}, {}, 0
  for _, p in ipairs(draft:values "param") do
    local unit = unit_name(p.name)
    if not numbers[unit] then numbers[unit], n = n, n + 1 end
    if #p.dims > 0 then
      draft:shard(p, { what = "param", axis = "batch", unit = numbers[unit], each = o.each })
      params[#params + 1], unit_of[p.id] = p, numbers[unit]
    end
  end
  draft:at_last(function(step) write_gathers(step, params, unit_of, o, gather) end)
end
