-- SPDX-License-Identifier: Apache-2.0
--
-- require "orrery": the table made by C++ plus what is written in Lua.
local _, orrery = ...
local engine = orrery.engine

-- A table whose entries are the files of a directory, loaded when first named.
local function shelf(directory, what)
  local shelved = {}
  return setmetatable(shelved, {
    __index = function(_, name)
      local names = {}
      local folder = engine.library() .. "/orrery/" .. directory
      for _, path in ipairs(orrery.data.files(folder, { ".lua" })) do
        names[#names + 1] = path:match "([^/]+)%.lua$"
        if names[#names] == name then
          local value = require("orrery." .. directory .. "." .. name)
          rawset(shelved, name, value)
          return value
        end
      end
      orrery.fail(("there is no %s '%s'%s"):format(
        what, name, orrery.did_you_mean(tostring(name), names)))
    end,
  })
end

orrery.nn = shelf("nn", "layer nn")
orrery.optim = shelf("optim", "optimizer or schedule optim")
orrery.strategy = require "orrery.strategy"
orrery.world = engine.world()

local compile = require "orrery.compile"
orrery.compile, orrery.func = compile.compile, compile.func
orrery.value_and_grad = compile.value_and_grad

orrery.gradient = require "orrery.gradient"

local module = require "orrery.nn.module_tree"
orrery.parameters = module.parameters

-- Prints a line from rank 0, formatted as by string.format.
function orrery.log(format, ...)
  engine.print(format:format(...))
end

-- A hash of all parameters' bytes in natural order of their paths.
function orrery.digest(model)
  return engine.digest(module.parameters(model))
end

local names = {}
for name in pairs(orrery) do names[#names + 1] = name end

return setmetatable(orrery, {
  __index = function(_, name)
    orrery.fail(("orrery has no '%s'%s"):format(name, orrery.did_you_mean(tostring(name), names)))
  end,
})
