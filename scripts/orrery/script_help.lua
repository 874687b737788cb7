-- SPDX-License-Identifier: Apache-2.0
--
-- `orrery run SCRIPT --help`: runs the script up to where it would compile its first run, or change a parameter or a
-- file, and lists the arguments that it has declared until then.
local _, orrery = ...
local engine = orrery.engine
local args = require "orrery.args"

local M = {}

local done = {} -- ends the script

local function stop() error(done, 0) end

-- Once arguments are declared, the script does not write.
local function guard(owner, name, writes)
  local real = owner[name]
  owner[name] = function(...)
    if args.calls[1] and writes(...) then stop() end
    return real(...)
  end
end

local function always() return true end

local function guard_files()
  guard(io, "open", function(_, mode) return type(mode) == "string" and mode:find "[wa+]" end)
  guard(io, "output", function(file) return file ~= nil end)
  guard(io, "popen", always)
  for _, name in ipairs { "execute", "remove", "rename" } do guard(os, name, always) end
  guard(engine, "save_weights", always)
end

local kinds = { boolean = "true or false", string = "text", integer = "integer", float = "number" }

local function kind_of(spec)
  if not spec.choices then return kinds[math.type(spec.default) or type(spec.default)] end
  local words = {}
  for i, choice in ipairs(spec.choices) do words[i] = tostring(choice) end
  return "one of " .. table.concat(words, ", ")
end

-- Lines "  steps=300   integer   training steps" of these arguments.
local function rows(names)
  local left, widths = {}, { 0, 0 }
  for i, name in ipairs(names) do
    local spec = args.declared[name]
    left[i] = { ("%s=%s"):format(name, tostring(spec.default)), kind_of(spec), spec.help or "" }
    for column = 1, 2 do widths[column] = math.max(widths[column], math.min(#left[i][column], 28)) end
  end
  local lines = {}
  for i, row in ipairs(left) do
    local line = ("  %-" .. widths[1] .. "s  %-" .. widths[2] .. "s  %s"):format(row[1], row[2], row[3])
    lines[i] = line:gsub("%s+$", "") .. "\n"
  end
  return table.concat(lines)
end

local function listed(script)
  if not args.calls[1] then return ("%s takes no arguments.\n"):format(script) end
  local parts, seen = {}, {}
  for _, call in ipairs(args.calls) do
    if not seen[call.place] then
      local place = #args.calls > 1 and "declared at " .. call.place:gsub("^%./", "") or "of " .. script
      parts[#parts + 1] = ("Arguments %s, as name=default:\n%s"):format(place, rows(call.names))
    end
    seen[call.place] = true
  end
  return table.concat(parts, "\n")
    .. "\n@FILE reads lines of key = value, or the table that a .lua file returns; what comes later wins.\n"
end

function M.text()
  local script = engine.script()
  args.settle = stop
  guard_files()
  local ok, message = pcall(engine.load_file(script, "@" .. script))
  if not ok and not rawequal(message, done) and not args.calls[1] then error(message, 0) end
  local ended = not ok and type(message) == "string"
    and ("\nThe script fails without its arguments, and may declare more than these:\n  %s\n"):format(message) or ""
  return ("Usage: orrery run [OPTIONS] %s [key=value | @FILE]...\n\n%s%s"):format(script, listed(script), ended)
end

return M
