-- SPDX-License-Identifier: Apache-2.0
--
-- `orrery stubs DIRECTORY`: what scripts can call, for Lua editors and to read.
local _, orrery = ...
local files = require "orrery.files"
local manual = require "orrery.manual"

return function(o)
  orrery.engine.make_directory(o.directory)
  files.write(o.directory .. "/orrery.lua", manual.stubs())
  files.write(o.directory .. "/api.md", manual.page())
  files.write(o.directory .. "/from-pytorch.md", require "orrery.from_pytorch".page())
  print(("wrote %s/orrery.lua, api.md and from-pytorch.md"):format(o.directory))
end
