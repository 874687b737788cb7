-- SPDX-License-Identifier: Apache-2.0
--
-- Lua values between ranks: nil, booleans, numbers, strings and tables of them. A value travels as a character for its
-- type and what belongs to it: n, T, F (nothing), i and d (8 bytes), s (length, bytes), t (number of pairs, then key and value
-- of each).
local _, orrery = ...
local engine = orrery.engine
local any_next = require "orrery.globals".next
local define = require "orrery.define"

local most_levels = 100

local encode

local function encode_table(value, level, bytes)
  if level > most_levels then
    orrery.fail(("the value is nested deeper than %d levels, or contains itself"):format(most_levels))
  end
  local head, pairs_of_it = #bytes + 1, 0
  bytes[head] = ""
  for key, its in any_next, value do
    pairs_of_it = pairs_of_it + 1
    encode(key, level, bytes)
    encode(its, level, bytes)
  end
  bytes[head] = ("c1 i8"):pack("t", pairs_of_it)
end

function encode(value, level, bytes)
  local kind = math.type(value) or type(value)
  local at = #bytes + 1
  if kind == "nil" then
    bytes[at] = "n"
  elseif kind == "boolean" then
    bytes[at] = value and "T" or "F"
  elseif kind == "integer" then
    bytes[at] = ("c1 i8"):pack("i", value)
  elseif kind == "float" then
    bytes[at] = ("c1 d"):pack("d", value)
  elseif kind == "string" then
    bytes[at] = ("c1 s8"):pack("s", value)
  elseif kind == "table" then
    encode_table(value, level + 1, bytes)
  else
    orrery.fail(("a %s cannot travel between ranks: only nil, booleans, numbers, strings and tables do"):format(
      orrery.type(value)))
  end
end

local function encoded(value)
  local bytes = {}
  encode(value, 0, bytes)
  return table.concat(bytes)
end

local formats = { i = "i8", d = "d", s = "s8" }

-- The value that begins at a place, and the place behind it.
local function decode(bytes, at)
  local tag = bytes:sub(at, at)
  at = at + 1
  if tag == "n" then return nil, at end
  if tag == "T" or tag == "F" then return tag == "T", at end
  if tag ~= "t" then return formats[tag]:unpack(bytes, at) end
  local made, count, key, value = {}, nil, nil, nil
  count, at = ("i8"):unpack(bytes, at)
  for _ = 1, count do
    key, at = decode(bytes, at)
    value, at = decode(bytes, at)
    made[key] = value
  end
  return made, at
end

-- Only the root's value travels, but its kind is known to the root alone: the others bring no bytes.
define([[World:broadcast_object(value?: any, options?) -> any; All ranks get the root's Lua value: nil, a boolean, a
    number, a string or a table of these.
    @option root: integer = 0; rank whose value all get]], function(world, value, o)
  local root = engine.plan_only() and 0 or o.root
  if root < 0 or root >= world.size then
    orrery.fail(("root is %d: ranks are 0..%d"):format(root, world.size - 1))
  end
  local own = world.rank == root and encoded(value) or ""
  return (decode(engine.gather_bytes(world, own, ("object of rank %d"):format(root)), 1))
end)

define([[World:allgather_object(value?: any) -> any[]; A list of all ranks' Lua values, in rank order.]],
function(world, value)
  local bytes = engine.gather_bytes(world, encoded(value), "objects")
  local list, at, count = {}, 1, 0
  while at <= #bytes do
    count = count + 1
    list[count], at = decode(bytes, at)
  end
  return list
end)
