-- SPDX-License-Identifier: Apache-2.0
--
-- What Tab proposes in `orrery repl`: variables, fields of tables and parts of modules, and methods by the API table.
local orrery = require "orrery"
local manual = require "orrery.manual"
local any_next = require "orrery.globals".next

local keywords = { "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
  "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while" }

local function add_keys(names, value)
  if type(value) ~= "table" then return end
  for key in any_next, value do
    if type(key) == "string" and key:find "^[%a_][%w_]*$" then names[key] = true end
  end
end

-- Owners in the API table of a value: its class, or the table of orrery that it is.
local function owners_of(value)
  local owners = { orrery.type(value) }
  if owners[1] == "State" or owners[1] == "Scalar" then owners[2] = "Tensor" end
  for _, name in ipairs { "nn", "optim", "metrics", "strategy", "data" } do
    if rawequal(value, orrery[name]) then owners[#owners + 1] = name end
  end
  if rawequal(value, orrery) then owners[#owners + 1] = "orrery" end
  return owners
end

-- The names that may stand behind `value.` or `value:`.
local function fields_of(value)
  local names = {}
  add_keys(names, value)
  for _, owner in ipairs(owners_of(value)) do
    for _, name in ipairs(manual.names_of(owner)) do names[name] = true end
  end
  return names
end

-- The value of a chain such as "model.blocks.1"; nothing is called but the tables of orrery, which load their files.
local function value_of(chain, variables)
  local value = variables
  for name in chain:gmatch "[^.:]+" do
    local holder = value
    local ok, found = pcall(function()
      local own = type(holder) == "table" and rawget(holder, name)
      return own or holder[name]
    end)
    if not ok or found == nil then return nil end
    value = found
  end
  return value
end

local M = {}

-- The words that the last word of `text` may become, in order.
function M.words(text, variables)
  local chain, mark, begun = text:match "([%a_][%w_.:]*)([.:])([%w_]*)$"
  local names, before = {}, ""
  if chain then
    local value = value_of(chain, variables)
    if value == nil then return {} end
    names, before = fields_of(value), chain .. mark
  else
    begun = text:match "([%a_][%w_]*)$" or ""
    add_keys(names, variables)
    add_keys(names, _G)
    for _, word in ipairs(keywords) do names[word] = true end
  end
  local words = {}
  for name in pairs(names) do
    if name:sub(1, #begun) == begun then words[#words + 1] = before .. name end
  end
  return words
end

return M
