-- SPDX-License-Identifier: Apache-2.0
--
-- Collectives on all values that hold tensors: a HostTensor, a state, numbers and nested lists of them, a list of
-- tensors, a module. If all ranks get the same result, states change in place; else new tensors are made.
local _, orrery = ...
local engine = orrery.engine
local define = require "orrery.define"
local fault = require "orrery.lists".fault

local most_levels = 8 -- of lists, as of dims

-- Whether a table is a nested list of numbers, which is a tensor.
local function is_numbers(list, level)
  if level > most_levels then
    orrery.fail(("a list is nested deeper than %d levels, or contains itself"):format(most_levels))
  end
  local first = rawget(list, 1)
  if type(first) == "table" then return is_numbers(first, level + 1) end
  return type(first) == "number"
end

local function is_list(value) return type(value) == "table" and not is_numbers(value, 1) end

-- The value with what `visit` returns in place of each tensor, in order. A module is the list of its states.
local function mapped(value, visit)
  local meta = debug.getmetatable(value)
  local states = meta and rawget(meta, "__states")
  if states then value = states(value) end
  if not is_list(value) then return visit(value) end
  if fault(value) then orrery.fail(("%s given, expected a list of tensors or numbers"):format(fault(value))) end
  local made = {}
  for i = 1, rawlen(value) do made[i] = mapped(rawget(value, i), visit) end
  return made
end

local posted = setmetatable({}, { __mode = "k" }) -- handle -> {kind, argument}

local function begin(kind, world, x, o)
  local tensors = {}
  local argument = mapped(x, function(tensor)
    if tensor == nil then
      orrery.fail "nil given, expected a HostTensor, a parameter, numbers, a list of them or a module"
    end
    tensors[#tensors + 1] = tensor
    return tensor
  end)
  if kind == "alltoall" and is_list(argument) then orrery.fail "alltoall takes one tensor, not a list" end
  local handle = engine.post(world, kind, tensors, o)
  posted[handle] = { kind = kind, argument = argument }
  return handle
end

local function wait(handle)
  local this = posted[handle]
  local results, splits = engine.await(handle)
  local at, in_place = 0, this.kind == "allreduce" or this.kind == "broadcast"
  local answer = mapped(this.argument, function(tensor)
    at = at + 1
    if not in_place or orrery.type(tensor) ~= "State" then return results[at] end
    tensor:write(results[at])
    return tensor
  end)
  if this.kind == "alltoall" then return answer, splits end
  return answer
end

define([[Handle:wait() -> any; Waits for the call and returns its result.]], wait)

-- A collective and its asynchronous form.
local function add(kind, returns, doc, options)
  options = options .. " @option name: string = ''; for messages; all ranks must give the same"
  define(("World:%s(x: any, options?) -> %s; %s%s"):format(kind, returns, doc, options),
    function(world, x, o) return wait(begin(kind, world, x, o)) end)
  define(("World:%s_async(x: any, options?) -> Handle; The same without waiting: handle:wait() gives the result.%s")
    :format(kind, options), function(world, x, o) return begin(kind, world, x, o) end)
end

local op = " @option op: string = 'sum'; sum, mean, min, max or prod"
add("allreduce", "any", "Reduces over all ranks; all get the result.", op)
add("broadcast", "any", "All ranks get the root's value.", " @option root: integer = 0; rank whose value all get")
add("allgather", "any", "All ranks' tensors joined along dim 1, in rank order; dim 1 may differ.", "")
add("reduce_scatter", "any", "Reduces, then each rank keeps its part of dim 1; the first may have one row more.", op)
add("alltoall", "orrery.HostTensor, integer[]",
  "Part r of dim 1 goes to rank r; the rows that came from each rank, too.",
  " @option splits?: integers; rows for each rank; left out: equal parts")
