-- SPDX-License-Identifier: Apache-2.0
--
-- Comparisons of tensors with numbers by == and ~=, which Lua answers without asking anybody: found in the text of
-- a line that a traced function is about to run (core/lua/conditions.h). Operands are names and their fields.
local _, orrery = ...

-- The line with its strings blanked, without its comment.
local function code_of(line)
  line = line:gsub("\\.", '""'):gsub("(['\"])(.-)%1", function(_, text) return ('"'):rep(#text + 2) end)
  return line:match "^(.-)%-%-" or line
end

-- What stands beside the sign: a chain of names (b.x), a number, or something else (nil).
local function kind_of(text)
  if text == "" or text == "nil" or text:find "^%." or text:find "%.$" then return nil end
  return (text == "true" or text == "false" or text:find "^%d") and "number" or "chain"
end

local function comparisons_in(line)
  local code, found = code_of(line), {}
  for at, sign, behind in code:gmatch "()([=~]=)()" do
    local before, left = code:sub(1, at - 1):match "([^%w_.]?)([%w_.]*) *$"
    local right, after = code:sub(behind):match "^ *([%w_.]*)(.?)"
    if before ~= "" and (":#)]"):find(before, 1, true) then left = "" end
    if after ~= "" and (":([{\"'"):find(after, 1, true) then right = "" end
    found[#found + 1] = { sign = sign, left = left, right = right, of_left = kind_of(left), of_right = kind_of(right) }
  end
  return found
end

-- The comparisons of each line of a chunk by its name as Lua keeps it; a library chunk has none.
local known = {}
local function comparisons_in_text(text)
  local lines = {}
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = comparisons_in(line) end
  return lines
end

local function comparisons_of(source)
  if known[source] then return known[source] end
  local lines = {}
  if source:sub(1, 1) == "@" then
    local file = io.open(source:sub(2))
    if file then
      for line in file:lines() do lines[#lines + 1] = comparisons_in(line) end
      file:close()
    end
  elseif source:sub(1, 1) ~= "=" then
    lines = comparisons_in_text(source)
  end
  known[source] = lines
  return lines
end

-- The innermost local variable or upvalue of this name at a level of the stack, as seen by the caller.
local function variable(level, name)
  local found, value
  for i = 1, 255 do
    local local_name, its = debug.getlocal(level + 1, i)
    if not local_name then break end
    if local_name == name then found, value = true, its end
  end
  if found then return value end
  local f = debug.getinfo(level + 1, "f").func
  for i = 1, 255 do
    local upvalue, its = debug.getupvalue(f, i)
    if not upvalue then return nil end
    if upvalue == name then return its end
  end
end

local is_tensor = { Tensor = true, State = true, Scalar = true, HostTensor = true }

-- "number", the class of a tensor, or nil for anything else.
local function class_of(level, kind, text)
  if kind ~= "chain" then return kind end
  local value
  for name in text:gmatch "[^.]+" do
    if value == nil then
      value = variable(level + 1, name)
    elseif type(value) == "table" then
      value = rawget(value, name)
    else
      return nil
    end
    if value == nil then return nil end
  end
  local class = orrery.type(value)
  return (class == "number" or is_tensor[class]) and class or nil
end

local M = {}

-- The text of a chunk whose name, "@NAME", is no file.
function M.remember(source, text) known[source] = comparisons_in_text(text) end

-- Refuses a line that the function two levels up is about to run.
function M.check(source, number)
  for _, c in ipairs(comparisons_of(source)[number] or {}) do
    local left, right = class_of(2, c.of_left, c.left), class_of(2, c.of_right, c.right)
    if left and right and (left == "number") ~= (right == "number") then
      local tensor, other = c.left, c.right
      if left == "number" then tensor, other = other, tensor end
      orrery.fail(("'%s %s %s' is always %s: it compares a %s itself, which has no numbers while the function is "
        .. "traced; write %s:%s(%s) and choose with orrery.where(condition, a, b)"):format(c.left, c.sign, c.right,
        c.sign == "~=", left == "number" and right or left, tensor, c.sign == "==" and "eq" or "ne", other))
    end
  end
end

-- Whether the line of a script, "f.lua:7", compares what some expression gives with a number.
function M.compares_with_number(place)
  local file, number = place:match "^(.*):(%d+)$"
  for _, c in ipairs(file and comparisons_of("@" .. file)[tonumber(number)] or {}) do
    if not c.of_left and c.of_right == "number" or not c.of_right and c.of_left == "number" then return true end
  end
  return false
end

return M
