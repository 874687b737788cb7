-- SPDX-License-Identifier: Apache-2.0
--
-- Functions of the library check their arguments by the blocks of "---" lines over them (blocks.lua): how many there
-- are, and their types where these say enough; the functions judge all else themselves.
local _, orrery = ...
local engine = orrery.engine
local read_blocks = require "orrery.blocks"
local fault = require "orrery.lists".fault
local is_callable = require "orrery.callable"

local modules = { Module = true, State = true }
local tensors = { Tensor = true, State = true, Scalar = true, HostTensor = true }

local dtypes = { f32 = true, f64 = true, bf16 = true, f16 = true, i32 = true, i64 = true, u8 = true, bool = true }

local function is_list(value) return type(value) == "table" and not fault(value) end

-- word = {what errors call it, whether a value is one}
local kinds = {
  integer = { "an integer", function(value)
    return math.type(value) == "integer" or type(value) == "number" and value % 1 == 0 and math.abs(value) < 2 ^ 63
  end },
  list = { "a list", is_list },
  ["integer[]"] = { "a list of integers", is_list },
  ["function"] = { "a function", is_callable },
  ["orrery.Tensor"] = { "a tensor", function(value) return tensors[orrery.type(value)] end },
  ["orrery.DType"] = { "one of f32, f64, bf16, f16, i32, i64, u8, bool", function(value) return dtypes[value] end },
  ["orrery.Module"] = { "a module", function(value) return modules[orrery.type(value)] end },
  ["orrery.Strategy"] = { "a strategy", function(value) return type(value) == "table" and value.name ~= nil end },
  ["orrery.Schedule"] = { "a function of the step", is_callable },
  boolean = { "true or false", function(value) return type(value) == "boolean" end },
}
for _, name in ipairs { "number", "string", "table" } do
  kinds[name] = { "a " .. name, function(value) return type(value) == name end }
end

-- The kinds that a declared type is made of; nothing if it has one that is not known here.
local function kinds_of(declared)
  local found = {}
  for word in declared:gmatch "[^|]+" do
    local kind = kinds[word:find "^fun%(" and "function" or word] or word:find "%[%]$" and kinds.list
    if not kind then return nil end
    found[#found + 1] = kind
  end
  return found
end

-- Both lists by name, with their kinds.
local function prepare(parameters)
  for _, each in ipairs(parameters) do each.kinds = kinds_of(each.type) end
  return parameters
end

-- How a function is called, for who left an argument out.
local function form(where, entry)
  local names = {}
  for i, parameter in ipairs(entry.parameters) do names[i] = parameter.name .. (parameter.optional and "?" or "") end
  return ("; call it as %s(%s)"):format(where, table.concat(names, ", "))
end

-- `entry`: of the function, if a position and not an option is checked.
local function check(where, parameter, value, entry)
  local wanted = parameter.kinds
  local absent = value == nil and parameter.optional or value == false and parameter.fallback == "false"
  if not wanted or absent then return end
  local words = {}
  for i, kind in ipairs(wanted) do
    if kind[2](value) then return end
    words[i] = kind[1]
  end
  local expected, shown = table.concat(words, " or "), engine.describe(value)
  if type(value) == "table" and expected:find "a list" then shown = fault(value) or shown end
  local remedy = value == nil and entry and form(where, entry) or ""
  orrery.fail(("%s: %s is %s, expected %s%s"):format(where, parameter.name, shown, expected, remedy))
end

local function check_call(where, entry, ...)
  local most, given = #entry.parameters, select("#", ...)
  local last = entry.parameters[most]
  if given > most and not (last and last.name == "...") then
    orrery.fail(("%s: %d arguments given, at most %d expected"):format(where, given, most))
  end
  for i, parameter in ipairs(entry.parameters) do
    local value = select(i, ...)
    if parameter.name ~= "..." and parameter.name ~= "options" then check(where, parameter, (value), entry) end
  end
  for i = last and last.name == "..." and last.kinds and most or given + 1, given do
    check(where, { name = "argument " .. i, kinds = last.kinds }, (select(i, ...)))
  end
  if #entry.options == 0 then return end
  local options = select(most, ...)
  if type(options) ~= "table" then return end
  for _, option in ipairs(entry.options) do check(where, option, options[option.name]) end
end

local function check_self(entry, self)
  if orrery.type(self) ~= entry.owner then
    local name = entry.name
    orrery.fail((":%s: called on %s; call it with a colon, x:%s(...)"):format(name, engine.describe(self), name))
  end
end

local function is_plain(value) return type(value) == "number" or type(value) == "string" end

-- The arguments, where a number or text in the place of the options is the first one of these.
local function named(entry, place, ...)
  local given, option = table.pack(...), entry.options[1]
  if option and is_plain(given[place]) then given[place] = { [option.name] = given[place] } end
  return table.unpack(given, 1, given.n)
end

-- The function of a tensor that f is with these arguments behind it.
local function layer(where, entry, f, ...)
  local behind = { parameters = table.move(entry.parameters, 2, #entry.parameters, 1, {}), options = entry.options }
  check_call(where, behind, ...)
  local given, known = table.pack(...), {}
  for _, option in ipairs(entry.options) do known[option.name] = true end
  if #entry.options > 0 then orrery.options(entry.name, given[1], known) end
  return engine.keep_frame(function(...)
    check_call(where, { parameters = { entry.parameters[1] }, options = {} }, ...)
    return f((...), table.unpack(given, 1, given.n))
  end)
end

-- A function of a tensor, which makes a layer where it gets what stands behind the tensor alone, or nothing.
local function with_layers(where, entry, f)
  return function(...)
    local first, may_lack = (...), #entry.parameters > 1
    local lacks = may_lack and (is_plain(first) or type(first) == "table" and getmetatable(first) == nil)
    if select("#", ...) == 0 or lacks then return layer(where, entry, f, named(entry, 1, ...)) end
    return f(named(entry, 2, ...))
  end
end

-- The function with checks, from a file of the library. NAME1d and NAME3d have the options of NAME2d.
return function(owner, name, f, file)
  local found, family
  for _, entry in ipairs(read_blocks(("%s/orrery/%s.lua"):format(engine.library(), file), {})) do
    if entry.owner == owner and entry.name == name then found = entry end
    if entry.owner == owner and entry.name == name:gsub("%dd$", "2d") then family = entry end
  end
  if not found then return engine.keep_frame(f) end
  local where = found.method and ":" .. name or owner .. "." .. name
  prepare(found.parameters)
  found.options = prepare(family.options)
  if found.method then
    return engine.keep_frame(function(self, ...)
      check_self(found, self)
      check_call(where, found, ...)
      return f(self, ...)
    end)
  end
  local function call(...)
    check_call(where, found, ...)
    return f(...)
  end
  return engine.keep_frame(found.layers and with_layers(where, found, call) or call)
end
