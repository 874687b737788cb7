-- SPDX-License-Identifier: Apache-2.0
--
-- Option tables of calls that are written in Lua.
local _, orrery = ...
local engine = orrery.engine
local any_next = require "orrery.globals".next
local define = require "orrery.define"

define([[orrery.options(what: string, given: any, defaults: table) -> table; Checks an option table: `defaults` with
    the given values; unknown names are errors.]],
  function(what, given, defaults)
    local merged, known = {}, {}
    for name, value in any_next, defaults do merged[name], known[#known + 1] = value, name end
    table.sort(known)
    if given ~= nil and type(given) ~= "table" then
      local first = known[1] and (", such as { %s = ... }"):format(known[1]) or ""
      orrery.fail(("%s: options are %s, expected a table%s"):format(what, engine.describe(given), first))
    end
    for name, value in any_next, given or {} do
      if defaults[name] == nil then
        local shown = type(name) == "string" and name or engine.describe(name)
        local hint = require "orrery.hints".option(shown, known)
        orrery.fail(("%s: unknown option '%s'%s"):format(what, shown, hint))
      end
      merged[name] = value
    end
    return merged
  end)
