-- SPDX-License-Identifier: Apache-2.0
--
-- The options of strategy.auto, checked, as an entry of a stack.
local _, orrery = ...
local defaults = { tensor = false, pipeline = true, context = false, zero = true, recompute = true, memory = 0, tries = 24 }
local units = { B = 1, KiB = 2 ^ 10, MiB = 2 ^ 20, GiB = 2 ^ 30, TiB = 2 ^ 40, KB = 1e3, MB = 1e6, GB = 1e9, TB = 1e12 }

local function bytes(given)
  if math.type(given) == "integer" and given >= 0 then return given end
  local number, unit = tostring(given):match "^([%d.]+) ?(%a+)$"
  if not tonumber(number) or not units[unit] then
    orrery.fail(("strategy.auto: memory is '%s': write bytes, or a size such as \"80GiB\""):format(given))
  end
  return math.floor(tonumber(number) * units[unit])
end

return function(options)
  local o = orrery.options("strategy.auto", options, defaults)
  local varied = {}
  for _, name in ipairs { "tensor", "pipeline", "context", "zero", "recompute" } do
    local given = o[name]
    if type(given) == "string" then given = { path = given } end
    varied[name] = given == true and {} or given
  end
  if math.type(o.tries) ~= "integer" or o.tries < 0 then
    orrery.fail(("strategy.auto: tries is %s: give a number of layouts, or 0"):format(tostring(o.tries)))
  end
  return {
    name = "auto", options = {}, line = orrery.engine.here(),
    auto = { varied = varied, memory = bytes(o.memory), tries = o.tries },
  }
end
