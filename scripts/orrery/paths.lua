-- SPDX-License-Identifier: Apache-2.0
--
-- Paths of modules and of files.
local _, orrery = ...
local engine = orrery.engine
local define = require "orrery.define"

-- '*' stands for any characters, dots included.
define([[orrery.glob(pattern: string, path: string) -> boolean; Whether a path matches a pattern with '*'.]],
  function(pattern, path) return path:find("^" .. pattern:gsub("[^%w*]", "%%%0"):gsub("%*", ".*") .. "$") ~= nil end)

local endings = { ".cpp", ".h", ".hpp", ".lua", ".md" }

-- In a source tree all of it, else what is installed.
define([[orrery.sources() -> string[]; Paths of Orrery's own sources and documents, texts to train on.]], function()
  local library = engine.library()
  local root = library:match "^(.*)/[^/]*$"
  if not engine.is_file(root .. "/meson.build") then return orrery.data.files(library, endings) end
  local found = {}
  for _, room in ipairs { "core", "kernels", "plugins", "scripts", "examples" } do
    for _, path in ipairs(orrery.data.files(root .. "/" .. room, endings)) do found[#found + 1] = path end
  end
  if engine.is_file(root .. "/README.md") then found[#found + 1] = root .. "/README.md" end
  table.sort(found)
  return found
end)
