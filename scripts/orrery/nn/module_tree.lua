-- SPDX-License-Identifier: Apache-2.0
--
-- The tree of modules: paths, parameters, printing. Parts are visited in natural order of their
-- names, so that every rank sees the same order.
local _, orrery = ...

local info = setmetatable({}, { __mode = "k" }) -- module -> {kind, forward, path, root, made, arguments}
local M = { info = info }

-- The keys of a module or list in natural order.
local function sorted_keys(node)
  local keys = {}
  for key in pairs(node) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return orrery.natural_less(tostring(a), tostring(b)) end)
  return keys
end

local function walk(node, path, depth, visit, seen)
  if seen[node] then return end
  seen[node] = true
  for _, key in ipairs(sorted_keys(node)) do
    local part = rawget(node, key)
    local at = path == "" and tostring(key) or path .. "." .. key
    local kind = orrery.type(part)
    if kind == "State" or kind == "Module" then visit(at, part, kind, depth, node, key) end
    if kind == "Module" or kind == "table" then
      walk(part, at, kind == "Module" and depth + 1 or depth, visit, seen)
    end
  end
end

-- Calls visit(path, part, kind, depth, node, key) for every module ("Module") and tensor ("State")
-- below: it is node[key].
function M.walk(node, visit) walk(node, "", 1, visit, {}) end

-- Gives modules and states below `root` their paths; what is shared keeps the first.
function M.set_paths(root)
  local seen = {}
  local name = info[root] and info[root].kind or "model" -- a plain table of modules
  M.walk(root, function(path, part, kind)
    local key = kind == "State" and part:identity() or part
    if seen[key] then return end
    seen[key] = true
    if kind == "State" then
      part:rename(path)
    else
      info[part].path, info[part].root = path, name
    end
  end)
end

local kinds = { State = true, Module = true, table = true }

-- What a table of modules and states must not hold: it would be passed over.
local function check_parts(list, above)
  if above[list] then orrery.fail "the table of modules contains itself" end
  above[list] = true
  for _, key in ipairs(sorted_keys(list)) do
    local kind = orrery.type(list[key])
    if not kinds[kind] then
      orrery.fail(("%s given as '%s', expected a parameter, a buffer or a module"):format(
        kind, tostring(key)))
    elseif kind == "table" then
      check_parts(list[key], above)
    end
  end
  above[list] = nil
end

-- All states of a module, of a table of modules, or of a list of states, by the order of their
-- paths.
local function states(model, wanted)
  local kind = orrery.type(model)
  if kind == "State" then return { model } end
  if kind ~= "Module" and kind ~= "table" then
    orrery.fail(("%s given, expected a module or a table of modules"):format(kind))
  end
  if kind == "table" then
    check_parts(model, {})
    if orrery.type(model[1]) ~= "State" then M.set_paths(model) end
  end
  local list, seen = {}, {}
  M.walk(model, function(_, part, part_kind)
    if part_kind ~= "State" or seen[part:identity()] or not wanted(part) then return end
    seen[part:identity()] = true
    list[#list + 1] = part
  end)
  return list
end

function M.parameters(model)
  return states(model, function(state) return state.trained end)
end

function M.states(model)
  return states(model, function() return true end)
end

-- Calls visit(path, state, holder) for every way to a state below `node`, also through parts that are shared.
local function each_way(node, path, above, visit)
  if above[node] then return end
  above[node] = true
  for _, key in ipairs(sorted_keys(node)) do
    local part = rawget(node, key)
    local at = path == "" and tostring(key) or path .. "." .. key
    local kind = orrery.type(part)
    if kind == "State" then visit(at, part, node) end
    if kind == "Module" or kind == "table" then each_way(part, at, above, visit) end
  end
  above[node] = nil
end

-- The name, and what it would be by the other paths, of which one is the name's end.
local function named_as(name, paths)
  local names = { name }
  for i, path in ipairs(paths) do
    local front = name:sub(1, #name - #path)
    if front .. path == name and (front == "" or front:sub(-1) == ".") then
      for k, other in ipairs(paths) do
        if k ~= i then names[#names + 1] = front .. other end
      end
      break
    end
  end
  return names
end

-- All paths of the states of a model, by their identities: a shared one has several, of which its name is one. Where
-- another root has given the names, all begin as that root's do.
function M.paths(model)
  local found, ways = {}, {}
  if orrery.type(model) ~= "State" then
    each_way(model, "", {}, function(path, state)
      local key = state:identity()
      ways[key] = ways[key] or {}
      table.insert(ways[key], path)
    end)
  end
  for _, state in ipairs(M.states(model)) do
    local key = state:identity()
    found[key] = named_as(state.name, ways[key] or {})
  end
  return found
end

-- The kinds of the modules that have a state as a part of their own, as {embedding = true, linear = true}, by the
-- states' identities. nil: no module has it.
function M.holders(model)
  local found = {}
  if orrery.type(model) == "State" then return found end
  each_way(model, "", {}, function(_, state, holder)
    local key = state:identity()
    if info[holder] then
      found[key] = found[key] or {}
      found[key][info[holder].kind] = true
    end
  end)
  return found
end

-- What set_paths gives to a module or a state, as a function that gives it again.
local function naming(part, kind)
  if kind == "State" then
    local name = part.name
    return function()
      if part.name ~= name then part:rename(name) end
    end
  end
  local path, root = info[part].path, info[part].root
  return function() info[part].path, info[part].root = path, root end
end

-- A function that gives what lies below the names that it has now, and fails if a module or tensor has been replaced:
-- what was compiled keeps the old. Names are lost where another root holds the same parts, such as another run's params.
function M.watch(model)
  local parts, rename = {}, info[model] and naming(model, "Module") or function() end
  if orrery.type(model) ~= "State" then
    M.walk(model, function(path, part, kind, _, node, key)
      parts[#parts + 1] = { path = path, part = part, node = node, key = key, rename = naming(part, kind) }
    end)
  end
  return function()
    rename()
    for _, p in ipairs(parts) do
      p.rename()
      if not rawequal(rawget(p.node, p.key), p.part) then
        orrery.fail(("'%s' of the model was replaced after it was compiled, which goes on with the old one; "
          .. "change a parameter with %s:write(value), or compile again"):format(p.path, p.path))
      end
    end
  end
end

-- The forward functions of all modules below, the model's own first.
function M.functions(model)
  local list = {}
  if info[model] then list[1] = info[model].forward end
  if orrery.type(model) == "State" then return list end
  M.walk(model, function(_, part, kind)
    if kind == "Module" then list[#list + 1] = info[part].forward end
  end)
  return list
end

local function count_of(state)
  local count = 1
  for _, dim in ipairs(state.shape) do count = count * dim end
  return count
end

-- The model as a tree: a line for each module and for each tensor with its path and shape.
function M.print(model)
  local lines, total, seen = {}, 0, {}
  M.walk(model, function(path, part, kind, depth)
    local line = ("%s%s  "):format(("  "):rep(depth), path)
    if kind == "Module" then
      line = line .. info[part].kind
    elseif seen[part:identity()] then
      line = line .. "shared with " .. part.name
    else
      seen[part:identity()] = true
      local count = count_of(part)
      line = line .. ("%s%s  %d"):format(part.dtype, tostring(part.shape), count)
      if part.trained then total = total + count end
    end
    lines[#lines + 1] = line
  end)
  table.insert(lines, 1, ("%s: %d parameters"):format(info[model].kind, total))
  return table.concat(lines, "\n")
end

return M
