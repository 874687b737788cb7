-- SPDX-License-Identifier: Apache-2.0
--
-- orrery.args: the script declares its arguments with their defaults; the command line's key=value words are read by
-- the defaults' types.
local _, orrery = ...
local engine = orrery.engine

local define = require "orrery.define"

local function wrong(key, value, want)
  engine.fail_usage(("argument %s=%s: expected %s"):format(key, value, want))
end

local booleans = { ["true"] = true, ["1"] = true, ["false"] = false, ["0"] = false }

-- `value` as the type of the default.
local function typed(key, value, default)
  if type(default) == "boolean" then
    if booleans[value] == nil then wrong(key, value, "true, false, 1 or 0") end
    return booleans[value]
  elseif math.type(default) == "float" then
    return (tonumber(value) or wrong(key, value, "a number")) + 0.0
  elseif math.type(default) == "integer" then
    return math.tointeger(tonumber(value)) or wrong(key, value, "an integer")
  end
  return value
end

-- A default that is a list names the values allowed; the first is the default.
local function check_allowed(key, value, list)
  local allowed = {}
  for i, each in ipairs(list) do
    allowed[i] = tostring(each)
    if allowed[i] == value then return end
  end
  wrong(key, value, "one of " .. table.concat(allowed, ", "))
end

define([[orrery.args(defaults: table) -> table; Declares the script's key=value arguments with their defaults and
    returns their values. A list as default names the allowed values.]], function(defaults)
  local known, values = {}, {}
  for key, default in pairs(defaults) do
    if type(key) == "string" then
      known[#known + 1] = key
      if type(default) == "table" then default = default[1] end
      values[key] = default
    end
  end
  local takes = "; the script takes " .. table.concat(known, ", ")
  for _, word in ipairs(engine.arguments()) do
    local key, value = word:match "^([^=]+)=(.*)$"
    if not key then
      engine.fail_usage(("argument '%s': write key=value%s"):format(word, takes))
    elseif defaults[key] == nil then
      engine.fail_usage(("argument '%s' is unknown%s%s"):format(key, orrery.did_you_mean(key, known), takes))
    end
    if type(defaults[key]) == "table" then check_allowed(key, value, defaults[key]) end
    values[key] = typed(key, value, values[key])
  end
  local names = {}
  for name, value in pairs(values) do
    names[#names + 1] = name
    engine.fact("config/" .. name, tostring(value))
  end
  return setmetatable(values, {
    __index = function(_, name)
      name = type(name) == "string" and name or "?"
      orrery.fail(("the script declares no argument '%s'%s"):format(name, orrery.did_you_mean(name, names)))
    end,
  })
end)
