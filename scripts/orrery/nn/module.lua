-- SPDX-License-Identifier: Apache-2.0
--
--- nn.module(name, build)
--- Makes a constructor of modules. `build(m, ...)` assigns parts to `m` and returns the forward
--- function, which closes over `m`. What is not a part of `m` is not trained.
---@param name string
---@param build fun(m:orrery.Module,...):function
---@return fun(...):orrery.Module
local _, orrery = ...
local tree = require "orrery.nn.module_tree"
local hints, eager = require "orrery.hints", require "orrery.eager"
local info = tree.info
local keep_frame, results = orrery.engine.keep_frame, orrery.engine.results
local checked, methods = require "orrery.checked", {}
for name, method in pairs(require "orrery.weights") do methods[name] = checked("Module", name, method, "weights") end

local meta = {
  __name = "Module",
  __metatable = false,
  __tostring = tree.print,
  __states = tree.states,
  __index = function(m, key)
    if methods[key] then return methods[key] end
    local names, hint = {}, hints.name("Module", key)
    for name in pairs(m) do names[#names + 1] = tostring(name) end
    if hint == "" then hint = orrery.did_you_mean(tostring(key), names) end
    orrery.fail(("%s has no part '%s'%s"):format(info[m].kind, key, hint))
  end,
  __call = keep_frame(function(m, ...)
    if eager.is_for_now(...) then return eager.call_module(m, ...) end
    local self = info[m]
    local region <close> = orrery.region(self.path == "" and self.kind
      or self.root and self.root .. "." .. self.path or self.path)
    return results(self.path == "" and self.kind or self.path, self.forward(...))
  end),
}

return function(kind, build)
  if type(kind) ~= "string" or type(build) ~= "function" then
    orrery.fail "nn.module: write nn.module(\"Name\", function(m, config) ... return forward end)"
  end
  local made
  made = keep_frame(function(...)
    local m = setmetatable({}, meta)
    info[m] = { kind = kind, path = "", root = kind, made = made, arguments = table.pack(...) }
    local forward = build(m, ...)
    if type(forward) ~= "function" then
      orrery.fail(("%s: the constructor returned %s, expected its forward function"):format(
        kind, orrery.type(forward)))
    end
    info[m].forward = forward
    tree.set_paths(m)
    return m
  end)
  return made
end
