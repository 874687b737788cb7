-- SPDX-License-Identifier: Apache-2.0
--
-- require "orrery": the table made by C++ plus what is written in Lua.
local _, orrery = ...
local engine = orrery.engine

for _, name in ipairs {
  "options", "args", "paths", "tensor", "tensor_shapes", "tensor_logic", "tensor_files", "onnx", "data", "augment", "mix", "filter", "readable", "weighted", "stream",
  "checkpoints", "record", "evaluate", "fit",
  "world_objects", "world_collectives",
} do
  require("orrery." .. name)
end
require "orrery.define"([[orrery.help(name: string); Prints what a function does and takes.]],
  function(name) require("orrery.manual").print_help(name) end)

local checked, hints = require "orrery.checked", require "orrery.hints"

-- What an error says to a name that a table does not have.
local function no_such_name(owner, name, names)
  local hint = hints.name(owner, name)
  return hint ~= "" and hint or orrery.did_you_mean(tostring(name), names)
end

-- What tostring gives of a table of the library: the names that it has.
local function overview_of(owner)
  return function() return require "orrery.manual".overview(owner) end
end

-- A table whose entries are the files of a directory, loaded when first named. NAME1d, NAME2d and NAME3d are the list
-- that NAME.lua returns.
local function shelf(directory, what)
  local shelved = {}
  return setmetatable(shelved, {
    __tostring = overview_of(directory),
    __index = function(_, name)
      local names = {}
      local folder = engine.library() .. "/orrery/" .. directory
      local family, dims = tostring(name):match "^(.*)([123])d$"
      for _, path in ipairs(orrery.data.files(folder, { ".lua" })) do
        names[#names + 1] = path:match "([^/]+)%.lua$"
        if names[#names] == (family or name) then
          local value = require("orrery." .. directory .. "." .. names[#names])
          if family then value = value[tonumber(dims)] end
          local file = directory .. "/" .. names[#names]
          if type(value) == "function" then value = checked(directory, name, value, file) end
          rawset(shelved, name, value)
          return value
        end
      end
      orrery.fail(("there is no %s '%s'%s"):format(what, name, no_such_name(directory, name, names)))
    end,
  })
end

orrery.nn = shelf("nn", "layer nn")
orrery.optim = shelf("optim", "optimizer or schedule optim")
orrery.metrics = shelf("metrics", "metric")
orrery.strategy = require "orrery.strategy"
getmetatable(orrery.strategy).__tostring = overview_of "strategy"
orrery.world = engine.world()

local compile = require "orrery.compile"
orrery.compile, orrery.func = compile.compile, compile.func
orrery.value_and_grad = compile.value_and_grad

orrery.gradient, orrery.scan = require "orrery.gradient", require "orrery.scan"
require "orrery.weight_map"
orrery.einsum, orrery.normal = require "orrery.einsum", require "orrery.normal"

-- orrery.ops.NAME(x, ..., {option = value}): an op of orrery.op.
local op = require "orrery.op"
orrery.op, orrery.ops, orrery.check_op = op.define, op.ops, require "orrery.op_judge"

--- orrery.parameters(model)
--- The trained tensors of a module or of a table of modules, in natural order of their paths. A table's keys become the
--- first part of the paths.
---@param model orrery.Module|table
---@return orrery.State[]
local module = require "orrery.nn.module_tree"
orrery.parameters = module.parameters

--- orrery.log(format, ...)
--- Prints a line from rank 0, formatted as by string.format.
---@param format string
---@param ... any
function orrery.log(format, ...)
  engine.print(format:format(...))
end

--- orrery.digest(model)
--- A hash of the bytes of all tensors below, parameters and buffers, in natural order of their paths.
---@param model orrery.Module|table
---@return string
function orrery.digest(model)
  local states = module.states(model)
  if #states == 0 then
    orrery.fail(("digest: %s holds no parameter and no buffer"):format(orrery.type(model)))
  end
  return engine.digest(states)
end

for file, defined in pairs {
  compile = { "compile", "func", "value_and_grad" }, gradient = { "gradient" }, scan = { "scan" },
  einsum = { "einsum" }, normal = { "normal" }, op = { "op" }, op_judge = { "check_op" }, init = { "parameters", "log", "digest" },
} do
  for _, name in ipairs(defined) do orrery[name] = checked("orrery", name, orrery[name], file) end
end

local names = {}
for name in pairs(orrery) do names[#names + 1] = name end

setmetatable(orrery.data, {
  __tostring = overview_of "data",
  __index = function(data, name)
    local own = {}
    for each in pairs(data) do own[#own + 1] = each end
    orrery.fail(("there is no data.%s%s"):format(name, no_such_name("data", name, own)))
  end,
})

return setmetatable(orrery, {
  __tostring = overview_of "orrery",
  __index = function(_, name)
    orrery.fail(("orrery has no '%s'%s"):format(name, no_such_name("orrery", name, names)))
  end,
})
