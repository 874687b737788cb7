-- SPDX-License-Identifier: Apache-2.0
--
-- `orrery plugins`: the plugins that were found, on or off, with the reason.
local survey = require "orrery.cli.survey"
local json = require "orrery.watch.json"

return function(o)
  local states = survey.plugins()
  if o.json then
    io.write(json.encode(states, ""), "\n")
    return
  end
  local width = #"NAME"
  for _, s in ipairs(states) do width = math.max(width, #s.name) end
  local line = ("%%-9s %%-%ds %%-9s %%-4s %%s"):format(width)
  io.write(line:format("KIND", "NAME", "VERSION", "", "PATH"), "\n")
  for _, s in ipairs(states) do
    io.write(line:format(s.kind, s.name, s.version, s.on and "on" or "off", s.path), "\n")
    if not s.on then io.write(("%-9s %s"):format("", s.reason), "\n") end
  end
  if #states == 0 then io.write "no plugins found; set ORRERY_PLUGIN_PATH to the directories that hold them\n" end
  io.write(("strategies in Lua: %s  %s"):format(table.concat(survey.scripted_strategies(), ", "),
    survey.strategy_directory), "\n")
end
