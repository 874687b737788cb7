-- SPDX-License-Identifier: Apache-2.0
--
-- Weights of modules: to and from safetensors files, by the paths of their tensors.
local _, orrery = ...
local engine = orrery.engine
local tree = require "orrery.nn.module_tree"

local M = {}

-- path -> state; a shared one has several. And the states, each once, with their first paths.
local function states_below(module)
  local by_path, states, paths, seen = {}, {}, {}, {}
  tree.walk(module, function(path, part, kind)
    if kind ~= "State" then return end
    by_path[path] = part
    if seen[part:identity()] then return end
    seen[part:identity()] = true
    states[#states + 1], paths[#paths + 1] = part, path
  end)
  return by_path, states, paths
end

-- Up to three of the names.
local function some(names)
  local more = #names > 3 and (", ... (%d in all)"):format(#names) or ""
  return "'" .. table.concat(names, "', '", 1, math.min(#names, 3)) .. "'" .. more
end

local function keep(name) return name end

--- Module:load_weights(path, options)
--- Gives the tensors of a module the values in a safetensors file, or in several by their index
--- (model.safetensors.index.json). Numbers become the dtype of the model's. Returns the paths that got no value, and a
--- list of the names in the file that were not used.
---@param path string
---@param options? table
---@option map function from a name in the file to a path in the module; nil leaves the tensor out, and a second
--- result of true transposes it, as GPT-2's Conv1D needs
---@option strict boolean=true every tensor of the module must be in the file, and the other way round
---@return string[]
function M.load_weights(module, path, options)
  local o = orrery.options("load_weights", options, { map = keep, strict = true })
  local file = engine.weights(path)
  local by_path, states, paths = states_below(module)
  local given, missing, unused = {}, {}, {} -- given: identity of a state -> where its value is
  for _, name in ipairs(file:names()) do
    local target, transpose = o.map(name)
    local state = target and by_path[target]
    if state then
      local before = given[state:identity()]
      if before then
        orrery.fail(("load_weights: %s: '%s' and '%s' are both for '%s'"):format(path, before.name, name, target))
      end
      given[state:identity()] = { name = name, transpose = transpose == true }
    elseif target then
      unused[#unused + 1] = name
    end
  end
  for i, state in ipairs(states) do
    if not given[state:identity()] then missing[#missing + 1] = paths[i] end
  end
  if o.strict and #missing > 0 then
    orrery.fail(("load_weights: %s has no %s; map may rename what it has, strict = false leaves them as they are")
      :format(path, some(missing)))
  elseif o.strict and #unused > 0 then
    orrery.fail(("load_weights: %s: the module has no %s; map may rename them or return nil, strict = false passes over them")
      :format(path, some(unused)))
  end
  for _, state in ipairs(states) do
    local from = given[state:identity()]
    if from then state:write(file:read(from.name, state, from.transpose)) end
  end
  return missing, unused
end

--- Module:save_weights(path)
--- Writes the tensors of a module, by their paths, to one safetensors file; all ranks call it.
---@param path string
function M.save_weights(module, path)
  local _, states, paths = states_below(module)
  if #states == 0 then orrery.fail "save_weights: the module has no tensors" end
  engine.save_weights(path, states, paths)
end

for name, method in pairs(M) do M[name] = engine.keep_frame(method) end
return M
