-- SPDX-License-Identifier: Apache-2.0
--
-- `orrery new plugin KIND NAME` (`orrery new editor` is cli/editor.lua): makes a project of three files from templates, which passes `orrery check` before its
-- author has written a line. Templates have @name@ in them.
local _, orrery = ...
local engine = orrery.engine
local files = require "orrery.files"
local survey = require "orrery.cli.survey"

local kinds = { "kernel", "device", "comm", "strategy", "observer", "op", "data" }

local function contains(list, wanted)
  for _, each in ipairs(list) do
    if each == wanted then return true end
  end
  return false
end

local function check_kind(kind)
  if not contains(kinds, kind) then
    orrery.fail(("there is no plugin kind '%s'%s; there are: %s"):format(kind, orrery.did_you_mean(kind, kinds),
      table.concat(kinds, ", ")))
  end
end

local function check_name(kind, name)
  local most = kind == "device" and 15 or 31 -- orr_device_facts.name
  if #name > most or not name:find "^[a-z][a-z0-9_]*$" then
    orrery.fail(("a plugin cannot be called '%s'; use up to %d of a-z, 0-9 and _, a letter first"):format(name, most))
  end
end

-- A plugin of the same kind and name would be hidden by this one, or hide it.
local function check_free(kind, name)
  local place
  for _, plugin in ipairs(engine.plugins()) do
    if plugin.kind == kind and plugin.name == name then place = place or plugin.path end
  end
  if kind == "strategy" and contains(survey.scripted_strategies(), name) then place = survey.strategy_directory end
  if place then
    orrery.fail(("there is a %s '%s' already, in %s; choose another name"):format(kind, name, place))
  end
end

local function template(name) return files.installed(engine.templates() .. "/" .. name) end

return function(o)
  if o.what == "editor" then return require "orrery.cli.editor"(o) end
  if not o.name then engine.fail_usage "new plugin: give a kind and a name, as in: orrery new plugin comm mine" end
  check_kind(o.kind)
  check_name(o.kind, o.name)
  check_free(o.kind, o.name)
  local language = o.c and "c" or "cpp"
  local source = o.name .. "." .. language
  local values = {
    name = o.name, kind = o.kind, source = source, language = language,
    standard = o.c and "c_std=c11" or "cpp_std=c++20",
  }
  local made = {
    [source] = template(o.kind .. "." .. language),
    ["meson.build"] = template "meson.build.in",
    ["README.md"] = template("README." .. o.kind .. ".md") .. template "README.md.in",
  }
  local why = engine.make_directory(o.name)
  if why ~= "" then
    orrery.fail(("directory %s %s; choose another name, or go elsewhere"):format(o.name, why))
  end
  for name, text in pairs(made) do files.write(o.name .. "/" .. name, (text:gsub("@(%l+)@", values))) end
  print(("made %s/; build and judge it:\n  cd %s && meson setup build && meson compile -C build\n"
    .. "  orrery check build/orrery-%s-%s.so"):format(o.name, o.name, o.kind, o.name))
end
