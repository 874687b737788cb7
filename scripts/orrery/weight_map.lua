-- SPDX-License-Identifier: Apache-2.0
--
-- Names of tensors in files of other programs and the paths of the same tensors in modules, both ways.
local _, orrery = ...
local define = require "orrery.define"
local fault = require("orrery.lists").fault

local M = {}
local back = setmetatable({}, { __mode = "k" }) -- map -> the function from paths to names

-- "h.*.ln_1" as a pattern for it and what is below it, and as a format.
local function forms_of(name)
  local pattern = name:gsub("[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0"):gsub("%*", "(%%d+)")
  return "^" .. pattern .. "(.*)$", name:gsub("%%", "%%%%"):gsub("%*", "%%d") .. "%s"
end

local known = { true, true, transpose = true } -- what a rule has

local function check_rule(i, rule)
  local first, second = type(rule) == "table" and rule[1], type(rule) == "table" and rule[2]
  if type(first) ~= "string" or type(second) ~= "string" then
    orrery.fail(("weight_map: rule %d is not { \"name in the file\", \"path in the module\" }"):format(i))
  end
  for key in pairs(rule) do
    if not known[key] then
      orrery.fail(("weight_map: rule %d ('%s') has '%s'; beside the two names there is transpose"):format(i, first, tostring(key)))
    end
  end
  if rule.transpose ~= nil and type(rule.transpose) ~= "boolean" then
    orrery.fail(("weight_map: rule %d ('%s'): transpose is %s, expected true or false"):format(i, first, tostring(rule.transpose)))
  end
  local _, stars = first:gsub("%*", "")
  local _, others = second:gsub("%*", "")
  if stars ~= others then
    orrery.fail(("weight_map: rule %d: '%s' and '%s' have different numbers of *"):format(i, first, second))
  end
end

-- The name by a rule's forms, with the numbers of layers changed by `step`; nil if it is not of the rule.
local function renamed(name, pattern, format, step)
  local found = table.pack(name:match(pattern))
  if found.n == 0 or not found[1] then return nil end
  local rest = found[found.n]
  if rest ~= "" and rest:sub(1, 1) ~= "." then return nil end
  for i = 1, found.n - 1 do found[i] = math.tointeger(found[i]) + step end
  return format:format(table.unpack(found)), rest
end

define([[orrery.weight_map(rules: table, options?) -> function; A map for load_weights and save_weights out of a list of
    rules { "h.*.attn.c_attn", "blocks.*.qkv", transpose = true }: a name in the file and the path in the module, each with
    what is below it. A * is the number of a layer, which counts from 0 in the file and from 1 in the module. Where a file
    has each expert's matrix by itself, the path ends in its number: { "experts.*.w1.weight", "experts.gate.*" }.
    @option prefix: string = ''; a beginning of names that those in a file may lack]],
  function(rules, o)
    local forms = {}
    if fault(rules) then orrery.fail(("weight_map: the rules are %s, expected a list"):format(fault(rules))) end
    for i, rule in ipairs(rules) do
      check_rule(i, rule)
      local name_pattern, name_format = forms_of(rule[1])
      local path_pattern, path_format = forms_of(rule[2])
      forms[i] = {
        name_pattern = name_pattern, name_format = name_format, path_pattern = path_pattern, path_format = path_format,
        transpose = rule.transpose == true,
      }
    end
    local function transposes(form, rest) return form.transpose and (rest == "" or rest:find "weight$" ~= nil) end
    local function path_of(name)
      for _, full in ipairs { name, o.prefix .. name } do
        for _, form in ipairs(forms) do
          local path, rest = renamed(full, form.name_pattern, form.path_format, 1)
          if path then return path, transposes(form, rest) end
        end
      end
      return nil
    end
    back[path_of] = function(path)
      for _, form in ipairs(forms) do
        local name, rest = renamed(path, form.path_pattern, form.name_format, -1)
        if name then return name, transposes(form, rest) end
      end
      return nil
    end
    return path_of
  end)

-- The function from paths to names and whether they are transposed, of a map that orrery.weight_map has made.
function M.back(map)
  return back[map]
    or orrery.fail "save_weights: map is a function from names to paths, which does not tell the way back: make it by orrery.weight_map"
end

return M
