-- SPDX-License-Identifier: Apache-2.0
--
-- What the command line gives a script: key=value words, and files of them behind an @. An @FILE has lines of
-- key=value, an @FILE.lua returns a table. The global `arg` has the words as Lua's own interpreter keeps them.
local _, orrery = ...
local engine = orrery.engine

local M = {}

local escapes = { n = "\n", t = "\t", ['"'] = '"', ["\\"] = "\\" }

-- The text between the quotes that `text` begins with, and what follows them; nil where they do not end.
local function quoted(text)
  if text:sub(1, 1) == "'" then return text:match "^'([^']*)'(.*)$" end
  local at = 2
  while true do
    local place = text:find('["\\]', at)
    if not place then return nil end
    if text:sub(place, place) == '"' then return text:sub(2, place - 1), text:sub(place + 1) end
    at = place + 2
  end
end

-- The value that a line has behind its `=`; `place` is for errors.
local function value_in(text, place)
  if not text:find "^[\"']" then return text:find "^#" and "" or (text:gsub("%s+#.*$", "")) end
  local value, rest = quoted(text)
  if not value then engine.fail_usage(("%s: %s has no closing quote"):format(place, text)) end
  if not rest:find "^%s*$" and not rest:find "^%s*#" then
    engine.fail_usage(("%s: '%s' follows the closing quote; write \\\" for a quote inside"):format(place, rest))
  end
  if text:sub(1, 1) == "'" then return value end
  return (value:gsub("\\(.)", function(letter)
    local says = "%s: \\%s is none of \\n, \\t, \\\" and \\\\; '...' keeps all as it is"
    return escapes[letter] or engine.fail_usage(says:format(place, letter))
  end))
end

local function text_of(path)
  local file, why = io.open(path, "rb")
  local text = file and file:read "a"
  if file then file:close() end
  if not text then engine.fail_usage(("argument '@%s': cannot be read: %s"):format(path, why or "it is no file")) end
  return text
end

local function entry(name, value, is_word, file)
  local label = ("%s%s=%s"):format(file and file .. ": " or "argument ", name, tostring(value))
  return { name = name, value = value, is_word = is_word, file = file, label = label }
end

local function lines_of(path, into)
  local number, seen = 0, {}
  for line in (text_of(path) .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    local place = ("%s:%d"):format(path, number)
    if line:find "%S" and not line:find "^%s*#" then
      local name, text = line:match "^%s*([%a_][%w_.%-]*)%s*=%s*(.-)%s*$"
      if not name then engine.fail_usage(("%s: expected key = value, found '%s'"):format(place, line)) end
      if seen[name] then engine.fail_usage(("%s: line %d has %s already"):format(place, seen[name], name)) end
      seen[name] = number
      into[#into + 1] = entry(name, value_in(text, place), true, place)
    end
  end
end

-- The path of a Lua file and, where it can be told, the line that has this key.
local function place_in(path, text, key)
  local number = 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    for at, word in line:gmatch "()([%a_][%w_.%-]*)['\"]?%]?%s*=%f[^=]" do
      if word == key and not line:sub(1, at):find "%-%-" then return ("%s:%d"):format(path, number) end
    end
  end
  return path
end

local function table_of(path, into)
  local text = text_of(path)
  local values = engine.load_file(path, "@" .. path)()
  if type(values) ~= "table" then
    local what = engine.describe(values)
    engine.fail_usage(("%s: returns %s, expected a table: return { steps = 100 }"):format(path, what))
  end
  for name, value in pairs(values) do
    local place = place_in(path, text, name)
    if type(name) ~= "string" then
      engine.fail_usage(("%s: [%s] is no name of an argument"):format(path, tostring(name)))
    end
    if type(value) == "table" or type(value) == "function" then
      engine.fail_usage(("%s: %s is a %s; expected a number, text, true or false"):format(place, name, type(value)))
    end
    into[#into + 1] = entry(name, value, false, place)
  end
end

local entries

-- All that is given, in its order: { name, value, is_word, file, label }. `is_word`: the value is text whose type the
-- default tells. A word that is no key=value has no name.
function M.entries()
  if entries then return entries end
  local list = {}
  for _, word in ipairs(engine.arguments()) do
    local path, name = word:match "^@(.*)$", word:match "^([^=]+)="
    if path then
      (path:find "%.lua$" and table_of or lines_of)(path, list)
    elseif name then
      list[#list + 1] = entry(name, word:sub(#name + 2), true)
    else
      list[#list + 1] = { label = ("argument '%s'"):format(word) }
    end
  end
  entries = list
  return list
end

local read = false

-- Whether the script reads the words by itself.
function M.arg_is_read() return read end

-- The global `arg`: [0] is the script, [1] the first word behind it. To read a word, or how many there are, is to read
-- them all.
function M.arg()
  local words = engine.arguments()
  local function noted() read = true; return words end
  return setmetatable({ [0] = engine.script() }, {
    __index = function(_, at) if math.type(at) == "integer" and at > 0 then return noted()[at] end end,
    __len = function() return #noted() end,
    __pairs = function() return pairs(noted()) end,
  })
end

return M
