-- SPDX-License-Identifier: Apache-2.0
--
--- nn.copy(model)
--- A second model: made by the same constructor of the same arguments, of which modules and tensors are copied, too, with
--- the values that parameters and buffers have now. It is trained for itself. Functions among the arguments stay the same.
---@param model orrery.Module
---@return orrery.Module
local _, orrery = ...
local tree = require "orrery.nn.module_tree"
local info = tree.info

local again

local function copied(value, known)
  local kind = orrery.type(value)
  local key = kind == "State" and value:identity() or value
  if kind ~= "State" and kind ~= "Module" and (kind ~= "table" or getmetatable(value) ~= nil) then return value end
  if known[key] then return known[key] end
  if kind == "State" then
    local make = value.trained and orrery.parameter or orrery.buffer
    known[key] = make(value.shape, { dtype = value.dtype, init = value:read() })
  elseif kind == "Module" then
    known[key] = again(value, known)
  else
    known[key] = {}
    for name, each in pairs(value) do known[key][name] = copied(each, known) end
  end
  return known[key]
end

function again(model, known)
  local made, arguments = info[model].made, { n = info[model].arguments.n }
  for i = 1, arguments.n do arguments[i] = copied(info[model].arguments[i], known) end
  return made(table.unpack(arguments, 1, arguments.n))
end

-- {path = State} below a model, and the paths in order.
local function states_of(model)
  local found, paths = {}, {}
  tree.walk(model, function(path, part, kind)
    if kind == "State" then found[path], paths[#paths + 1] = part, path end
  end)
  return found, paths
end

local function refuse(what, kind) orrery.fail(("copy: %s of '%s': give it to the constructor"):format(what, kind)) end

return function(model)
  if not info[model] then orrery.fail(("copy: %s is no module of nn.module"):format(orrery.type(model))) end
  local kind = info[model].kind
  local copy = again(model, {})
  local from, paths = states_of(model)
  local to, others = states_of(copy)
  for _, path in ipairs(others) do
    if not from[path] then refuse(("there is no part '%s' any more"):format(path), kind) end
  end
  for _, path in ipairs(paths) do
    local old, new = from[path], to[path]
    if not new or tostring(old.shape) ~= tostring(new.shape) then
      refuse(("the part '%s' was not made by the constructor"):format(path), kind)
    elseif new == old then
      refuse(("the part '%s' was made outside of the constructor"):format(path), kind)
    end
    new:write(old:read())
    if old.frozen then new:freeze() end
  end
  return copy
end
