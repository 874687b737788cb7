-- SPDX-License-Identifier: Apache-2.0
--
-- Everything that a script can call, in one list: the rows of the API table and those that the library has declared
-- (define.lua), the blocks of "---" lines that stand over other functions of it (blocks.lua), and the strategy plugins
-- that are here. orrery.help, editors' stubs and docs/api.md are made of it.
local _, orrery = ...
local engine = orrery.engine
local read_blocks = require "orrery.blocks"
require "orrery" -- which declares

local entries, fields = {}, {}
for _, row in ipairs(engine.rows()) do table.insert(row.field and fields or entries, row) end
for _, path in ipairs(orrery.data.files(engine.library() .. "/orrery", { ".lua" })) do read_blocks(path, entries) end
for _, name in ipairs(engine.strategies()) do
  entries[#entries + 1] = {
    owner = "strategy", name = name, returns = "orrery.Strategy", doc = "The strategy plugin of this name.",
    parameters = { { name = "options", type = "table", doc = "", fallback = "", optional = true } },
    options = engine.strategy_options(name),
  }
end
for _, table_of in ipairs {
  { "orrery", "nn", "orrery.nn" }, { "orrery", "optim", "orrery.optim" }, { "orrery", "strategy", "orrery.strategy" },
  { "orrery", "metrics", "orrery.metrics" }, { "orrery", "data", "orrery.data" }, { "orrery", "world", "orrery.World" }, { "nn", "init", "orrery.nn.init" },
  { "strategy", "traffic", "orrery.strategy.traffic" },
} do
  table.insert(fields, { owner = table_of[1], name = table_of[2], returns = table_of[3] })
end

-- Owners in the order of their first entries.
local owners, seen = {}, {}
for _, entry in ipairs(entries) do
  if not seen[entry.owner] then owners[#owners + 1] = entry.owner end
  seen[entry.owner] = true
end

local function is_class(owner) return owner:find "^%u" ~= nil end
local function luals_name(owner) return owner == "orrery" and owner or "orrery." .. owner end
local function full(entry) return entry.owner .. "." .. entry.name end

-- "orrery.func(fn)", "Run:save(directory, extra?)"
local function call_of(entry)
  local names = {}
  for i, parameter in ipairs(entry.parameters) do names[i] = parameter.name .. (parameter.optional and "?" or "") end
  return ("%s%s%s(%s)"):format(entry.owner, entry.method and ":" or ".", entry.name, table.concat(names, ", "))
end

-- What a parameter is for and its default, behind `before`; "" if there is neither.
local function about(parameter, before)
  local text, fallback = parameter.doc, "default " .. parameter.fallback
  if parameter.fallback ~= "" then text = text == "" and fallback or ("%s (%s)"):format(text, fallback) end
  return text == "" and "" or before .. text
end

-- The entries of an owner but the metamethods.
local function entries_of(owner)
  local found = {}
  for _, entry in ipairs(entries) do
    if entry.owner == owner and entry.name:sub(1, 2) ~= "__" then found[#found + 1] = entry end
  end
  return found
end

-- What all functions of this kind do, for the manual.
local function told_of_layers(entry)
  if not entry.layers then return "" end
  local option = entry.options[1]
  local alone = entry.parameters[2] and (option and option.name or entry.parameters[2].name) or ""
  return (" Without x, as nn.%s(%s), it is a layer."):format(entry.name, alone)
end
for _, entry in ipairs(entries) do entry.doc = entry.doc .. told_of_layers(entry) end

local function function_stub(entry, add)
  local class = ("%s.%s.Options"):format(luals_name(entry.owner), entry.name)
  if #entry.options > 0 then add("\n---@class %s\n", class) end
  for _, option in ipairs(entry.options) do
    add("---@field %s%s %s%s\n", option.name, option.optional and "?" or "", option.type, about(option, " "))
  end
  add("\n---%s\n", entry.doc)
  local names = {}
  for i, parameter in ipairs(entry.parameters) do
    names[i] = parameter.name
    local kind = #entry.options > 0 and i == #entry.parameters and class or parameter.type
    add("---@param %s%s %s%s\n", parameter.name, parameter.optional and "?" or "", kind,
      parameter.doc == "" and "" or " " .. parameter.doc)
  end
  if entry.returns ~= "" then add("---@return %s\n", entry.returns) end
  if entry.layers then
    local class_or_type = #entry.options > 0 and class .. "|number|string" or entry.parameters[2] and entry.parameters[2].type
    add("---@overload fun(%s): fun(x: orrery.Tensor): orrery.Tensor\n",
      class_or_type and ("%s?: %s"):format(entry.parameters[2].name, class_or_type) or "")
  end
  add("function %s%s%s(%s) end\n", is_class(entry.owner) and entry.owner or luals_name(entry.owner),
    entry.method and ":" or ".", entry.name, table.concat(names, ", "))
end

local is_tensor = { HostTensor = true, State = true, Scalar = true } -- which have the methods of tensors, too

local function class_stub(owner, add)
  add("\n---@class %s%s\n", luals_name(owner), is_tensor[owner] and ": orrery.Tensor" or "")
  for _, field in ipairs(fields) do
    if field.owner == owner then add("---@field %s %s\n", field.name, field.returns) end
  end
  if owner == "Tensor" then
    add "---@field [integer|table] orrery.Tensor x[2], x[{1, {2, 5}}]: of each dim one place, or a range with both ends\n"
    for _, name in ipairs { "add", "sub", "mul", "div", "mod", "pow" } do
      add("---@operator %s(orrery.Tensor|number): orrery.Tensor\n", name)
    end
    add "---@operator unm: orrery.Tensor\n"
  end
  add(owner ~= "orrery" and not is_class(owner) and "orrery.%s = {}\n" or "local %s = {}\n", owner)
end

local function option_line(option, before)
  return ("  {%s = %s}%s\n"):format(option.name, option.type, about(option, before))
end

-- A list of texts and a function that adds one to it, formatted.
local function texts()
  local list = {}
  return list, function(format, ...) list[#list + 1] = format:format(...) end
end

local M = {}

-- Names of all that orrery.help knows.
function M.names()
  local names = {}
  for i, entry in ipairs(entries) do names[i] = full(entry) end
  return names
end

-- Names of the functions, methods and fields of an owner.
function M.names_of(owner)
  local names = {}
  for _, entry in ipairs(entries_of(owner)) do names[#names + 1] = entry.name end
  for _, field in ipairs(fields) do
    if field.owner == owner then names[#names + 1] = field.name end
  end
  return names
end

-- What a table or class has, as lines: "nn has:", then its names.
function M.overview(owner)
  local lines, line = { owner .. " has:" }, " "
  local names = M.names_of(owner)
  table.sort(names, orrery.natural_less)
  for i, name in ipairs(names) do
    if #line + #name > 96 then lines[#lines + 1], line = line, " " end
    line = line .. " " .. name .. (i < #names and "," or "")
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

-- What orrery.help(name) prints.
function M.help(name)
  local list, add = texts()
  name = name:gsub(":", ".")
  local owner = name:gsub("^orrery%.", "")
  if seen[owner] then add("%s\n", M.overview(owner)) end
  for _, entry in ipairs(entries) do
    if name == full(entry) or name == "orrery." .. full(entry) or name == entry.name then
      add("%s%s\n  %s\n", call_of(entry), entry.returns == "" and "" or " -> " .. entry.returns, entry.doc)
      for _, p in ipairs(entry.parameters) do add("  %s: %s%s\n", p.name, p.type, about(p, ", ")) end
      for _, option in ipairs(entry.options) do add("%s", option_line(option, ": ")) end
    end
  end
  if #list == 0 then
    orrery.fail(("there is no help on '%s'%s"):format(name, orrery.did_you_mean(name, M.names())))
  end
  return table.concat(list)
end

function M.print_help(name) io.write(M.help(name)) end

local head = {
  "---@meta", "-- Made by `orrery stubs`; do not edit.", "error('this file is for editors; write require \"orrery\"')", "",
  "---@alias orrery.DType 'f32'|'f64'|'bf16'|'f16'|'i32'|'i64'|'u8'|'bool'|'f8_e4m3'|'f8_e5m2'",
  "---@alias orrery.Value {id: integer, name: string, dims: integer[], dtype: orrery.DType, bytes: integer, "
    .. "region: string, line: string, op: string, phase: string}",
  "---@alias orrery.Schedule fun(step: integer): number", "---@alias orrery.Initial number|orrery.HostTensor|table", "",
  "---@class orrery.Module: {[string|integer]: any}", "---@overload fun(...): orrery.Tensor ...", "",
  "---@class orrery.Strategy",
}

-- The LuaLS declarations of everything, as one file.
function M.stubs()
  local list, add = texts()
  for _, line in ipairs(head) do add("%s\n", line) end
  for _, first in ipairs { true, false } do
    for _, owner in ipairs(owners) do
      if (owner == "orrery") == first then
        class_stub(owner, add)
        for _, entry in ipairs(entries_of(owner)) do function_stub(entry, add) end
      end
    end
  end
  add "\nreturn orrery\n"
  return table.concat(list)
end

local of_the_library = { engine = true, Region = true, Program = true, Weights = true }

local told_of_places = "- **`Tensor[place]`** `orrery.Tensor`: One place of the first dim, `x[2]`, or of each dim a place or a "
  .. "range {first, last, step?}, `x[{1, {2, 5}}]`; {} is all of a dim. Places count from 1, and from -1 at the end; ranges "
  .. "include both ends; a dim of which one place is taken is gone."
local told_of_tensors = {
  HostTensor = "Has the operators and methods of tensors. In a traced function it is a constant; elsewhere they are computed "
    .. "at once and give\nHostTensors: `x * 2`, `x:sum(1)`, `#x`, and `model(x)` of a module.",
  State = "Is a tensor in traced functions, with the value that it has then; elsewhere `State:read()` gives the value.",
  Scalar = "Is a tensor without dims in traced functions.",
}

-- docs/api.md.
function M.page()
  local list, add = texts()
  add [[# API

Everything a script can call, after `local orrery = require "orrery"`; `nn`, `optim`, `strategy` and `data`
are tables of it, classes have capitals. A name with `?` may be left out. Made by `orrery stubs`, as are the
declarations for editors; `orrery.help "name"` prints the same.
]]
  for _, owner in ipairs(owners) do
    if of_the_library[owner] then goto next end
    add("\n## %s\n\n", owner)
    if is_tensor[owner] then add("%s\n\n", told_of_tensors[owner]) end
    for _, field in ipairs(fields) do
      if field.owner == owner and is_class(owner) then add("- **`%s.%s`** `%s`\n", owner, field.name, field.returns) end
    end
    if owner == "Tensor" then add("%s\n", told_of_places) end
    for _, entry in ipairs(entries_of(owner)) do
      add("- **`%s%s`**: %s\n", call_of(entry), entry.returns == "" and "" or " -> " .. entry.returns, entry.doc)
      for _, p in ipairs(entry.parameters) do
        if about(p, "") ~= "" then add("  - `%s` `%s`%s\n", p.name, p.type, about(p, ": ")) end
      end
      for _, o in ipairs(entry.options) do
        add("  - `{%s = %s}`%s%s\n", o.name, o.type, o.optional and "" or ", required", about(o, ": "))
      end
    end
    ::next::
  end
  return table.concat(list)
end

return M
