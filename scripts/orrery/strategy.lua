-- SPDX-License-Identifier: Apache-2.0
--
-- strategy.NAME{options}: one entry of a strategy stack. Names are those of the installed plugins.
local _, orrery = ...
local engine = orrery.engine

-- Lists of names ({ "qkv", "mlp.1" }) travel as text with commas between; a list of parts of the model
-- ({ { "tok", "blocks.1" }, "head" }) with semicolons between the parts.
local in_parts = { stages = true, modules = true }

local function text_of(value, between)
  if type(value) ~= "table" or type(value[1]) == "number" then return value end
  local words = {}
  for i, word in ipairs(value) do words[i] = text_of(word, ",") end
  return table.concat(words, between)
end

local function flat(options)
  local given = {}
  for name, value in pairs(options or {}) do
    given[name] = text_of(value, in_parts[name] and ";" or ",")
  end
  return given
end

-- Fully sharded data parallelism by its own name: zero's stage 3.
local function fsdp(options)
  local given = flat(options)
  if given.stage then orrery.fail("strategy.fsdp is stage 3 of strategy.zero: it has no option 'stage'") end
  given.stage = 3
  return { name = "zero", options = given, line = engine.here() }
end

return setmetatable({ fsdp = fsdp }, {
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
