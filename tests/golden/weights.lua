-- SPDX-License-Identifier: Apache-2.0
--
-- Reads a small safetensors file of f32 tensors into a model: eight bytes of header length, a header
-- in JSON as make.py writes it, the numbers.
local orrery = require "orrery"

local entry = '"([^"]+)":{"dtype":"F32","shape":%[([%d,]+)%],"data_offsets":%[(%d+),(%d+)%]}'

-- The numbers of `bytes` from `at` on as lists nested by dims[level...]; also where they end.
local function nested(bytes, at, dims, level)
  local list = {}
  for i = 1, dims[level] do
    if level == #dims then
      list[i], at = ("<f"):unpack(bytes, at)
    else
      list[i], at = nested(bytes, at, dims, level + 1)
    end
  end
  return list, at
end

return function(model, path)
  local file = assert(io.open(path, "rb"))
  local length = ("<I8"):unpack(file:read(8))
  local header, bytes, found = file:read(length), file:read "a", {}
  file:close()
  for name, shape, first in header:gmatch(entry) do
    local dims = {}
    for size in shape:gmatch "%d+" do dims[#dims + 1] = tonumber(size) end
    found[name] = nested(bytes, tonumber(first) + 1, dims, 1)
  end
  for _, parameter in ipairs(orrery.parameters(model)) do
    if not found[parameter.name] then orrery.fail(("%s has no tensor '%s'"):format(path, parameter.name)) end
    parameter:write(found[parameter.name])
    found[parameter.name] = nil
  end
  local left = next(found)
  if left then orrery.fail(("%s: the model has no parameter '%s'"):format(path, left)) end
end
