-- SPDX-License-Identifier: Apache-2.0
--
-- orrery.args: the script declares its arguments with their defaults; what the command line gives (args_given.lua) is
-- read by the defaults' types. A script may call it several times, so an argument is unknown only when the script
-- compiles its first run, or ends, and no call has declared it.
local _, orrery = ...
local engine = orrery.engine

local define = require "orrery.define"
local given = require "orrery.args_given"

local M = {
  declared = {}, -- name -> { default, choices or nil, help or nil }
  calls = {},    -- of orrery.args: { place = "train.lua:3", names = {...} }
}

local kinds = { string = true, number = true, boolean = true }

-- What a script says of one argument: a default, a list of the allowed values, or either with help.
local function specification(name, value)
  local list = type(value) == "table" and value or { value }
  local spec = { default = list[1], help = list.help }
  for key, each in pairs(list) do
    if key ~= "help" and math.type(key) ~= "integer" then
      orrery.fail(("args: '%s' has '%s'; write { default, help = \"...\" }"):format(name, tostring(key)))
    elseif key == "help" and type(each) ~= "string" or key ~= "help" and not kinds[type(each)] then
      orrery.fail(("args: '%s' has %s%s; expected %s"):format(name, key == "help" and "as help " or "",
        engine.describe(each), key == "help" and "text" or "a number, text, true or false, or a list of these"))
    end
  end
  if spec.default == nil then orrery.fail(("args: '%s' has no default"):format(name)) end
  if type(value) == "table" and (#list > 1 or not list.help) then
    spec.choices = table.move(list, 1, #list, 1, {})
  end
  return spec
end

local function wrong(entry, want) engine.fail_usage(("%s: expected %s"):format(entry.label, want)) end

local booleans = { ["true"] = true, ["1"] = true, ["false"] = false, ["0"] = false }

-- `value`, a word or what a Lua file has, as the type of the default.
local function typed(entry, default)
  local value = entry.value
  if type(default) == "boolean" then
    if entry.is_word then value = booleans[value] end
    if type(value) ~= "boolean" then wrong(entry, "true, false, 1 or 0") end
    return value
  elseif type(default) == "number" then
    if entry.is_word then value = tonumber(value) end
    local is_float = math.type(default) == "float"
    if type(value) ~= "number" then wrong(entry, is_float and "a number" or "an integer") end
    return is_float and value + 0.0 or math.tointeger(value) or wrong(entry, "an integer")
  end
  if type(value) ~= "string" then wrong(entry, "text in quotes") end
  return value
end

local function chosen(entry, choices)
  local allowed = {}
  for i, each in ipairs(choices) do
    allowed[i] = tostring(each)
    local same = each == entry.value
    if entry.is_word and type(each) == "number" then same = tonumber(entry.value) == each end
    if same or entry.is_word and allowed[i] == entry.value then return each end
  end
  wrong(entry, "one of " .. table.concat(allowed, ", "))
end

local function value_of(name, spec)
  local value = spec.default
  for _, entry in ipairs(given.entries()) do
    if entry.name == name then value = spec.choices and chosen(entry, spec.choices) or typed(entry, spec.default) end
  end
  return value
end

local function declare(name, value, call)
  if type(name) ~= "string" or not name:find "^[%a_][%w_.%-]*$" then
    orrery.fail(("args: %s is no name of an argument; write name = default"):format(engine.describe(name)))
  end
  local before = M.declared[name]
  -- A function that declares may be called again, and so may a line of `orrery repl`.
  if before and before.place ~= call.place and engine.script() ~= "" then
    orrery.fail(("args: '%s' is declared at %s already; an argument belongs to one call"):format(name, before.place))
  end
  local spec = specification(name, value)
  spec.place = call.place
  M.declared[name] = spec
  call.names[#call.names + 1] = name
  return spec
end

local function names_of(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  return names
end

-- What is wrong with the first word or line that no call has declared, or nil.
function M.unknown()
  if given.arg_is_read() then return nil end
  local known = names_of(M.declared)
  local takes = "; the script takes " .. (known[1] and table.concat(known, ", ") or "none")
  local place = M.calls[1] and M.calls[1].place .. ": " or ""
  for _, entry in ipairs(given.entries()) do
    local before = entry.file and "" or place
    if not M.calls[1] then
      return ("%s: the script takes none (it has not called orrery.args)"):format(entry.label)
    elseif not entry.name then
      return ("%s%s: write key=value or @FILE%s"):format(before, entry.label, takes)
    elseif not M.declared[entry.name] then
      return ("%s%s'%s' is unknown%s%s"):format(before, entry.file and entry.file .. ": " or "argument ", entry.name,
        orrery.did_you_mean(entry.name, known), takes)
    end
  end
end

local told = false -- of an unknown argument

-- Called before the first run is compiled, and at the end of the script. `orrery run SCRIPT --help` sets another.
function M.settle()
  local unknown = M.unknown()
  told = unknown ~= nil
  if unknown then engine.fail_usage(unknown) end
end

-- What is added to an error that ends the script before that: it may come of an argument that is misspelt.
function M.hint()
  local readable, entries = pcall(given.entries)
  if not M.calls[1] or given.arg_is_read() or told or not readable then return "" end
  for _, entry in ipairs(entries) do
    if entry.name and not M.declared[entry.name] then
      local near = orrery.did_you_mean(entry.name, names_of(M.declared))
      return ("\nuntil there the script has declared no argument '%s'%s"):format(entry.name, near)
    end
  end
  return ""
end

define([[orrery.args(defaults: table) -> table; Declares key=value arguments of the script with their defaults and
    returns their values. A list as default names the allowed values; { default, help = "..." } says what
    `orrery run SCRIPT --help` prints of one. A script may call it several times.]], function(defaults)
  local call = { place = engine.here(), names = {} }
  M.calls[#M.calls + 1] = call
  local values = {}
  for name, default in pairs(defaults) do values[name] = value_of(name, declare(name, default, call)) end
  for name, value in pairs(values) do engine.fact("config/" .. name, tostring(value)) end
  local names = names_of(values)
  return setmetatable(values, {
    __index = function(_, name)
      name = type(name) == "string" and name or "?"
      orrery.fail(("the script declares no argument '%s'%s"):format(name, orrery.did_you_mean(name, names)))
    end,
  })
end)

return M
