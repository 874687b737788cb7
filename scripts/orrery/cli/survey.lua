-- SPDX-License-Identifier: Apache-2.0
--
-- Which plugins and strategies are here, and whether they can be used.
local _, orrery = ...
local engine = orrery.engine

local M = { strategy_directory = engine.library() .. "/orrery/strategy" }

local numbers = setmetatable({}, { __mode = "k" })  -- of plugins, as the engine has them

-- One for each plugin and kind: first those that are on, then by kind, name and path. All are loaded.
function M.plugins()
  local states = engine.plugins()
  for number, s in ipairs(states) do
    if s.reason == "" then s.reason = engine.refusal(number) end
    s.on = s.reason == ""
    numbers[s] = number
  end
  table.sort(states, function(a, b)
    if a.on ~= b.on then return a.on end
    for _, key in ipairs { "kind", "name", "path" } do
      if a[key] ~= b[key] then return a[key] < b[key] end
    end
    return false
  end)
  return states
end

-- What the builds of these plugins are without, as a list written beside them says: "data http: the package".
function M.left_out(states)
  local found, seen = {}, {}
  for _, s in ipairs(states) do
    local folder = s.path:match "^(.*)/"
    local list = not seen[folder] and io.open(folder .. "/left-out.txt")
    seen[folder] = true
    for line in list and list:lines() or function() end do
      if line ~= "" then found[#found + 1] = line end
    end
    if list then list:close() end
  end
  return found
end

-- What one of them has found out about this machine: { name, text } each.
function M.facts(state) return state.on and engine.facts(numbers[state]) or {} end

-- The names of the Lua library's strategies, sorted. Scripts may define more (strategy.define).
function M.scripted_strategies()
  local names = {}
  for i, path in ipairs(orrery.data.files(M.strategy_directory, { ".lua" })) do
    names[i] = path:match "([^/]+)%.lua$"
  end
  return names
end

return M
