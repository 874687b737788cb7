-- SPDX-License-Identifier: Apache-2.0
--
-- The blocks of "---" lines that stand over functions of the library. Of one, the first line is the call, then
-- sentences, then
--   ---@param NAME[?] TYPE text           one for each argument; ? may be left out
--   ---@option NAME TYPE[=DEFAULT] text   a field of the last argument; the text may go on in further lines
--   ---@return TYPE

-- The first word, which may hold blanks inside of brackets, and the rest.
local function take_word(line)
  local depth = 0
  for at = 1, #line do
    local letter = line:sub(at, at)
    if letter == " " and depth == 0 then return line:sub(1, at - 1), line:sub(at):match "^ *(.*)" end
    if letter:find "[%(%{%[]" then depth = depth + 1 end
    if letter:find "[%)%}%]]" then depth = depth - 1 end
  end
  return line, ""
end

-- "NAME[?] TYPE text" and "NAME TYPE[=DEFAULT] text".
local function parameter_in(line)
  local name, rest = take_word(line)
  local declared, doc = take_word(rest)
  local kind, fallback = declared:match "^([^=]*)=?(.*)$"
  return { name = name:gsub("%?$", ""), type = kind, doc = doc, fallback = fallback, optional = name:sub(-1) == "?" }
end

-- Of "nn.init.normal(deviation, mean)" or "Optimizer:attach(model)".
local function entry_in(call, path)
  local owner, mark, name = call:match "^([^(]+)([.:])([^(]+)%("
  if not owner then error(("%s: '%s' is no call"):format(path:match "[^/]+$", call), 0) end
  return { owner = owner, name = name, method = mark == ":", returns = "", doc = "", parameters = {}, options = {} }
end

-- A line without a tag goes on with what the one before it says.
local function read_line(entry, line)
  local tag, text = line:match "^@(%l+) (.*)$"
  local list = tag == "param" and entry.parameters or tag == "option" and entry.options
  if list then
    entry.last = parameter_in(text)
    entry.last.optional = entry.last.optional or tag == "option"
    table.insert(list, entry.last)
  elseif tag == "return" then
    entry.returns = text
  else
    local told = entry.last or entry
    told.doc = told.doc .. (told.doc == "" and "" or " ") .. line:match "^ *(.*)"
  end
end

-- Whether a function takes a tensor and needs nothing else: without the tensor it is a layer (checked.lua).
local function makes_layers(entry)
  local first = entry.parameters[1]
  if entry.owner ~= "nn" or not first or first.type ~= "orrery.Tensor" or first.optional then return false end
  for i = 2, #entry.parameters do
    if not entry.parameters[i].optional then return false end
  end
  return true
end

-- Adds an entry {owner, name, method, returns, doc, parameters, options, layers} for each block
-- of a file.
return function(path, entries)
  local inside, before = false, #entries
  for line in io.lines(path) do
    local text = line:match "^%-%-%-(.+)$"
    if text and inside then
      read_line(entries[#entries], text)
    elseif text then
      entries[#entries + 1] = entry_in(text:sub(2), path)
    end
    inside = text ~= nil
  end
  for i = before + 1, #entries do entries[i].layers = makes_layers(entries[i]) end
  return entries
end
