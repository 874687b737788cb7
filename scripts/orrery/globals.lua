-- SPDX-License-Identifier: Apache-2.0
--
-- What chunks see as globals, run once before any: iteration in an order that all ranks share, globals that must be
-- declared, `load` of texts alone, and a `require` that finds the library's own modules first, so that nothing shadows
-- them, then the script's directory, then ORRERY_LUA_PATH (directories joined by ':').
local orrery, script_directory, more_directories = ...
local engine = orrery.engine
local any_next, any_load, any_xpcall, sort = next, load, xpcall, table.sort

-- What a function, called from C, takes as its first argument.
local function check_type(called, what, wanted)
  if type(what) ~= wanted then
    error(("bad argument #1 to '%s' (%s expected, got %s)"):format(called, wanted, orrery.type(what)), 4)
  end
end

-- pairs and next: numbers, then strings, then booleans, sorted.
local place = { number = 1, string = 2, boolean = 3 }

local function before(a, b)
  local of_a, of_b = place[type(a)], place[type(b)]
  if of_a ~= of_b then return of_a < of_b end
  if of_a == 3 then return not a and b end
  return a < b
end

local function sorted_keys(t)
  local keys, count, sortable, kind, mixed = {}, 0, true, nil, false
  for key in any_next, t do
    count = count + 1
    keys[count] = key
    local its = type(key)
    sortable = sortable and place[its]
    mixed = mixed or its == "boolean" or kind and its ~= kind
    kind = its
  end
  if count > 1 and not sortable then
    orrery.fail("this table has keys that are neither numbers nor strings: they have no order that all ranks share; "
      .. "keep a list beside it")
  end
  if count > 1 then sort(keys, mixed and before or nil) end
  return keys
end

function pairs(t)
  local meta = debug.getmetatable(t)
  local own = meta and rawget(meta, "__pairs")
  if own then return own(t) end
  check_type("pairs", t, "table")
  local keys, at = sorted_keys(t), 0
  -- What has been set to nil meanwhile is left out.
  return function()
    while true do
      at = at + 1
      local key = keys[at]
      if key == nil then return nil end
      local value = rawget(t, key)
      if value ~= nil then return key, value end
    end
  end, t, nil
end

-- The smallest key above `key`.
function next(t, key)
  check_type("next", t, "table")
  local keys, at = sorted_keys(t), 1
  if key ~= nil then
    while keys[at] ~= nil and not rawequal(keys[at], key) do at = at + 1 end
    at = at + 1
  end
  if keys[at] == nil then return nil end
  return keys[at], rawget(t, keys[at])
end

-- Globals: those of Lua can be read, nothing else is one.
local function name_of(key) return type(key) == "string" and key or "?" end

setmetatable(_G, {
  __index = function(t, key)
    if key == "arg" and engine.script() ~= "" then
      rawset(t, key, require "orrery.args_given".arg())
      return rawget(t, key)
    end
    local known = {}
    for name in pairs(t) do known[#known + 1] = name end
    local hint = require "orrery.hints".name("global", key)
    if hint == "" then hint = orrery.did_you_mean(name_of(key), known) end
    orrery.fail(("undeclared variable '%s'%s"):format(name_of(key), hint))
  end,
})
local globals = setmetatable({}, {
  __index = _G,
  __newindex = function(_, key)
    local name = name_of(key)
    orrery.fail(("assignment to undeclared variable '%s'; write local %s = ..."):format(name, name))
  end,
})

-- Lua's own would bring bytecode and other globals in, and so would its loadfile and dofile.
function load(text, name, _, ...)
  if type(text) == "number" then text = tostring(text) end
  check_type("load", text, "string")
  local environment = globals
  if select("#", ...) > 0 then environment = ... end
  return any_load(text, name or text, "t", environment)
end

-- The path is one of the working directory, as in Lua; `require` is what finds the script's neighbours.
function loadfile(path, _, ...)
  check_type("loadfile", path, "string")
  local file, why = io.open(path, "rb")
  if not file then return nil, "cannot open " .. why end
  local text = file:read "a"
  file:close()
  if not text then return nil, ("cannot read %s: it is no file"):format(path) end
  return load(text:gsub("^#[^\n]*", ""), "@" .. path, "t", ...)
end

function dofile(path)
  check_type("dofile", path, "string")
  local chunk, why = loadfile(path)
  if not chunk then error(why, 3) end
  return chunk()
end

-- What Lua itself raises in a file of the library names the script's line, also where the script catches it.
local function in_script(message)
  local text = type(message) == "string" and message:match "^orrery/[%w_/]+%.lua:%d+: (.*)"
  return text and ("%s: %s"):format(engine.here(), text) or message
end

function pcall(f, ...) return any_xpcall(f, in_script, ...) end

-- What the library iterates with where no order shows.
local modules, under_way = { ["orrery.globals"] = { next = any_next } }, {}
for _, name in ipairs { "string", "table", "math", "utf8", "os", "io", "coroutine", "debug" } do
  modules[name] = _G[name]
end

local function is_library(name) return name == "orrery" or name:sub(1, 7) == "orrery." end

-- The file of a module.
local function find(name)
  local directories, tried = { is_library(name) and engine.library() or script_directory }, {}
  if not is_library(name) then
    for directory in more_directories:gmatch "[^:]+" do directories[#directories + 1] = directory end
  end
  for _, directory in ipairs(directories) do
    for _, ending in ipairs { ".lua", "/init.lua" } do
      local path = directory:gsub("/$", "") .. "/" .. name:gsub("%.", "/") .. ending
      if engine.is_file(path) then return path end
      tried[#tried + 1] = path
    end
  end
  orrery.fail(("require: there is no module '%s'; tried %s"):format(name, table.concat(tried, ", ")))
end

function require(name)
  if type(name) == "number" then name = tostring(name) end
  check_type("require", name, "string")
  local made = modules[name]
  if rawequal(made, under_way) then
    orrery.fail(("require: module '%s' requires itself, directly or through others"):format(name))
  elseif made ~= nil then
    return made
  end
  local path = find(name)
  modules[name] = under_way
  local own = is_library(name)
  local chunk_name = own and "=orrery/" .. path:sub(#engine.library() + #"/orrery/" + 1) or "@" .. path
  local value = engine.load_file(path, chunk_name)(name, own and orrery or path)
  if value == nil then value = true end
  modules[name] = value
  return value
end

-- Called through C, they keep the line of a script's `return require "x"`.
for _, name in ipairs { "pairs", "next", "load", "loadfile", "dofile", "require" } do
  _G[name] = engine.keep_frame(_G[name])
end
package = nil
return globals
