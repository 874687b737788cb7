-- SPDX-License-Identifier: Apache-2.0
--
-- Writes messages in the encoding of Protocol Buffers: fields by their numbers, one text for each.
local M = {}

local function varint(value)
  local bytes = {}
  repeat
    local low, rest = value & 0x7F, value >> 7
    bytes[#bytes + 1] = string.char(rest ~= 0 and low | 0x80 or low)
    value = rest
  until value == 0
  return table.concat(bytes)
end

function M.whole(field, value) return varint(field << 3) .. varint(value) end

-- A text, bytes or a message.
function M.bytes(field, text) return varint(field << 3 | 2) .. varint(#text) .. text end

function M.real(field, value) return varint(field << 3 | 5) .. ("<f"):pack(value) end

function M.wholes(field, list)
  local parts = {}
  for i, value in ipairs(list) do parts[i] = varint(value) end
  return M.bytes(field, table.concat(parts))
end

return M
