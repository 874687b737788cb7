-- SPDX-License-Identifier: Apache-2.0
--
-- JSON texts as Lua values, and back: objects and arrays become tables, null becomes nil (it is left out of tables), or
-- what the caller wants for it.
local M = {}

local deepest = 100 -- tables inside of tables; a text of brackets alone would take minutes

local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }
local words = { ["true"] = true, ["false"] = false }
local value_at, depth, null

local function wrong(text, at)
  error(("no JSON at byte %d: '%s'"):format(at, text:sub(at, at + 20)), 0)
end

-- The character of \uXXXX, or of two of them that stand for one, and what comes behind.
local function code_at(text, at)
  local code = tonumber(text:match("^%x%x%x%x", at + 2) or wrong(text, at), 16)
  local second = code >= 0xD800 and code < 0xDC00 and text:match("^\\u([dD][c-fC-F]%x%x)", at + 6)
  if not second then return code, at + 6 end
  return 0x10000 + ((code - 0xD800) << 10) + tonumber(second, 16) - 0xDC00, at + 12
end

local function string_at(text, at)
  local parts, from = {}, at + 1
  while true do
    local stop = text:find('["\\]', from) or wrong(text, at)
    parts[#parts + 1] = text:sub(from, stop - 1)
    if text:sub(stop, stop) == '"' then return table.concat(parts), stop + 1 end
    local escaped = text:sub(stop + 1, stop + 1)
    if escaped == "u" then
      local code, after = code_at(text, stop)
      parts[#parts + 1], from = utf8.char(code), after
    else
      parts[#parts + 1], from = escapes[escaped] or escaped, stop + 2
    end
  end
end

local function skip(text, at) return text:find("[^ \t\r\n]", at) or #text + 1 end

local function list_at(text, at)
  local list, count = {}, 0
  at = skip(text, at + 1)
  if text:sub(at, at) == "]" then return list, at + 1 end
  while true do
    count = count + 1
    list[count], at = value_at(text, at)
    at = skip(text, at)
    local mark = text:sub(at, at)
    if mark == "]" then return list, at + 1 end
    if mark ~= "," then wrong(text, at) end
    at = at + 1
  end
end

local function object_at(text, at)
  local object = {}
  at = skip(text, at + 1)
  if text:sub(at, at) == "}" then return object, at + 1 end
  while true do
    at = skip(text, at)
    if text:sub(at, at) ~= '"' then wrong(text, at) end
    local key
    key, at = string_at(text, at)
    at = skip(text, at)
    if text:sub(at, at) ~= ":" then wrong(text, at) end
    object[key], at = value_at(text, at + 1)
    at = skip(text, at)
    local mark = text:sub(at, at)
    if mark == "}" then return object, at + 1 end
    if mark ~= "," then wrong(text, at) end
    at = at + 1
  end
end

local function inside(read, text, at)
  depth = depth + 1
  if depth > deepest then error(("more than %d tables inside of one another at byte %d"):format(deepest, at), 0) end
  local value, after = read(text, at)
  depth = depth - 1
  return value, after
end

function value_at(text, at)
  at = skip(text, at)
  local first = text:sub(at, at)
  if first == "{" then return inside(object_at, text, at) end
  if first == "[" then return inside(list_at, text, at) end
  if first == '"' then return string_at(text, at) end
  local number = text:match("^-?%d+%.?%d*[eE]?[+-]?%d*", at)
  if number and tonumber(number) then return tonumber(number), at + #number end
  local word = text:match("^%a+", at)
  if word == "null" then return null, at + 4 end
  if word == nil or words[word] == nil then wrong(text, at) end
  return words[word], at + #word
end

-- The value of a text that holds one; an error says where it does not. `for_null` stands for null.
function M.decode(text, for_null)
  depth, null = 0, for_null
  local value, after = value_at(text, 1)
  if skip(text, after) <= #text then wrong(text, after) end
  return value
end

local named = { ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ['"'] = '\\"',
  ["\\"] = "\\\\" }

local function quoted(text)
  return '"' .. text:gsub('[%c"\\]', function(c) return named[c] or ("\\u%04x"):format(c:byte()) end) .. '"'
end

-- The text of a boolean, a number, a string or a table of them, a line for each field, those of an object sorted;
-- `before` stands in front of every line but the first.
function M.encode(value, before)
  if type(value) == "string" then return quoted(value) end
  if type(value) ~= "table" then return tostring(value) end
  local lines, inner = {}, before .. "  "
  local list = value[1] ~= nil or next(value) == nil
  for key, each in pairs(value) do
    lines[#lines + 1] = inner .. (list and "" or quoted(key) .. ": ") .. M.encode(each, inner)
  end
  if not list then table.sort(lines) end
  local first, last = list and "[" or "{", list and "]" or "}"
  return #lines == 0 and first .. last or ("%s\n%s\n%s%s"):format(first, table.concat(lines, ",\n"), before, last)
end

return M
