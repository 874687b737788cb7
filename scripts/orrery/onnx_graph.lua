-- SPDX-License-Identifier: Apache-2.0
--
-- A graph of ONNX while it is written: nodes, constants and the names of values.
local _, orrery = ...
local pb = require "orrery.protobuf"

local Graph = {}
Graph.__index = Graph

-- TensorProto.DataType
Graph.TYPES = { f32 = 1, u8 = 2, i32 = 6, i64 = 7, bool = 9, f16 = 10, f64 = 11, bf16 = 16 }
local PACK = { f32 = "<f", f64 = "<d", i32 = "<i4", i64 = "<i8", u8 = "B", bool = "B" }

function Graph.new() return setmetatable({ nodes = {}, constants = {}, made = 0, bytes = 0 }, Graph) end

function Graph:fresh()
  self.made = self.made + 1
  return "_" .. self.made
end

function Graph:add(to, text)
  to[#to + 1], self.bytes = text, self.bytes + #text
  if self.bytes > 0x7FFF0000 then orrery.fail "save_onnx: the file would have more than 2 GB, which ONNX does not allow" end
end

-- A tensor by its name.
function Graph:tensor(name, dtype, dims, raw)
  local text = pb.wholes(1, dims) .. pb.whole(2, self.TYPES[dtype]) .. pb.bytes(8, name) .. pb.bytes(9, raw)
  self:add(self.constants, pb.bytes(5, text))
  return name
end

function Graph:wholes(list)
  local parts = {}
  for i, value in ipairs(list) do parts[i] = ("<i8"):pack(value) end
  return self:tensor(self:fresh(), "i64", { #list }, table.concat(parts))
end

-- A number without dims. ONNX has the bits of 16-bit reals; a cast makes them.
function Graph:number(value, dtype)
  local format = PACK[dtype]
  if not format then return self:node("Cast", { self:number(value, "f32") }, { to = self.TYPES[dtype] }) end
  if dtype == "bool" then value = value ~= 0 and 1 or 0 end
  if format:find "[iB]" then value = math.tointeger(value) end
  return self:tensor(self:fresh(), dtype, {}, format:pack(value))
end

function Graph:list(values, dtype, dims)
  local parts = {}
  for i, value in ipairs(values) do parts[i] = PACK[dtype]:pack(value) end
  return self:tensor(self:fresh(), dtype, dims or { #values }, table.concat(parts))
end

local function attribute(name, value)
  local text = pb.bytes(1, name)
  if math.type(value) == "integer" then return text .. pb.whole(3, value) .. pb.whole(20, 2) end
  if type(value) == "number" then return text .. pb.real(2, value) .. pb.whole(20, 1) end
  if type(value) == "string" then return text .. pb.bytes(4, value) .. pb.whole(20, 3) end
  return text .. pb.wholes(8, value) .. pb.whole(20, 7)
end

-- Adds a node with `count` outputs, by default one; their names.
function Graph:node(kind, inputs, attributes, count)
  local parts, outputs = {}, {}
  for i, name in ipairs(inputs) do parts[i] = pb.bytes(1, name) end
  for i = 1, count or 1 do
    outputs[i] = self:fresh()
    parts[#parts + 1] = pb.bytes(2, outputs[i])
  end
  parts[#parts + 1] = pb.bytes(3, ("%s_%d"):format(kind, #self.nodes + 1)) .. pb.bytes(4, kind)
  local names = {}
  for name in pairs(attributes or {}) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do parts[#parts + 1] = pb.bytes(5, attribute(name, attributes[name])) end
  self:add(self.nodes, pb.bytes(1, table.concat(parts)))
  return table.unpack(outputs)
end

return Graph
