-- SPDX-License-Identifier: Apache-2.0
--
-- `orrery new editor`: a .luarc.json, by which a Lua language server knows what scripts here can call.
local _, orrery = ...
local engine = orrery.engine
local files = require "orrery.files"

local settings = [[
{
  "runtime.version": "Lua 5.4",
  "workspace.library": ["%s"],
  "workspace.checkThirdParty": false
}
]]

return function(o)
  local library = engine.library() .. "/meta"
  if o.kind or o.c then engine.fail_usage "new editor: it takes nothing more, and writes .luarc.json into this directory" end
  if engine.is_file ".luarc.json" then
    engine.fail_usage((".luarc.json is there already; add %s to its workspace.library"):format(library))
  end
  files.write(".luarc.json", settings:format((library:gsub('[\\"]', "\\%0"))))
  print "wrote .luarc.json"
end
