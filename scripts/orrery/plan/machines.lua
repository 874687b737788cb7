-- SPDX-License-Identifier: Apache-2.0
--
-- The machines that come with Orrery: files of speeds in machines/, which `orrery plan --machine` finds by their names.
local _, orrery = ...
local engine = orrery.engine

local M = {}
local directory = engine.library() .. "/orrery/machines"

-- Their names, sorted.
function M.names()
  local names = {}
  for i, path in ipairs(orrery.data.files(directory, { ".json" })) do names[i] = path:match "([^/]+)%.json$" end
  table.sort(names)
  return names
end

-- The file that `--machine given` means. A word without a slash or a dot is a name.
function M.file(given)
  if given == "" or given:find "[/.]" then return given end
  local names = M.names()
  for _, name in ipairs(names) do
    if name == given then return ("%s/%s.json"):format(directory, name) end
  end
  engine.fail_usage(("--machine %s: no machine has this name%s; there are %s; a file is named by a path with a dot "
    .. "or a slash in it"):format(given, orrery.did_you_mean(given, names), table.concat(names, ", ")))
end

-- What to call the machine of a plan: the name of ours, or the file.
function M.title(path)
  local name = path:sub(1, #directory + 1) == directory .. "/" and path:sub(#directory + 2):match "^(.+)%.json$"
  return name or path
end

return M
