-- SPDX-License-Identifier: Apache-2.0
--
-- strategy.NAME{options}: one entry of a strategy stack. Names are those of the installed plugins.
local _, orrery = ...
local engine = orrery.engine

-- Lists of names ({ "qkv", "mlp.1" }) travel as text with commas between.
local function flat(options)
  local given = {}
  for name, value in pairs(options or {}) do
    local list = type(value) == "table" and type(value[1]) == "string"
    given[name] = list and table.concat(value, ", ") or value
  end
  return given
end

return setmetatable({}, {
  __index = function(_, name)
    local known = engine.strategies()
    for _, strategy in ipairs(known) do
      if strategy == name then
        return function(options)
          return { name = name, options = flat(options), line = engine.here() }
        end
      end
    end
    local all = #known > 0 and table.concat(known, ", ") or "none"
    orrery.fail(("no plugin provides the strategy '%s'%s; there are: %s"):format(
      name, orrery.did_you_mean(tostring(name), known), all))
  end,
})
