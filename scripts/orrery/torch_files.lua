-- SPDX-License-Identifier: Apache-2.0
--
-- Files of torch.save and directories of torch.distributed.checkpoint, by the data plugin "pt", whose one sample has
-- all tensors as fields.
local _, orrery = ...
local engine = orrery.engine

local M = {}

local function is_checkpoint(path)
  local file = io.open(path .. "/.metadata", "rb")
  return file ~= nil and file:close()
end

function M.is_one(path)
  return path:find "%.pt$" ~= nil or path:find "%.pth$" ~= nil or path:find "%.bin$" ~= nil or is_checkpoint(path)
end

local function names(path)
  local list = {}
  for name in pairs(orrery.data.open("pt", path):batch(1, { size = 1 })) do list[#list + 1] = name end
  table.sort(list)
  return list
end

local function read(path, name, dtype)
  return engine.first(orrery.data.open("pt", path, { tensor = name }, { [name] = dtype }))
end

function M.load(path)
  local all = {}
  for _, name in ipairs(names(path)) do all[name] = read(path, name) end
  return all
end

-- As engine.weights gives it.
local Weights = {}
Weights.__index = Weights

function Weights:names() return names(self.path) end

function Weights:read(name, state, transpose)
  local value = read(self.path, name, state.dtype)
  if transpose then value = value:transpose() end
  local wanted, found = table.concat(state.shape, ","), table.concat(value.shape, ",")
  if wanted ~= found then
    orrery.fail(("%s: '%s' is [%s]%s, of the model it is [%s]; map may rename and transpose it"):format(
      self.path, name, found, transpose and " transposed" or "", wanted))
  end
  return value
end

function M.weights(path) return setmetatable({ path = path }, Weights) end

return M
