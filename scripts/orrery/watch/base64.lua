-- SPDX-License-Identifier: Apache-2.0
--
-- Bytes in the letters of RFC 4648, as data: addresses have them.
local letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

local function letter(bits) return letters:sub(bits + 1, bits + 1) end

return function(bytes)
  local out = {}
  for at = 1, #bytes, 3 do
    local a, b, c = bytes:byte(at, at + 2)
    local bits = a << 16 | (b or 0) << 8 | (c or 0)
    out[#out + 1] = letter(bits >> 18) .. letter(bits >> 12 & 63) .. (b and letter(bits >> 6 & 63) or "=")
      .. (c and letter(bits & 63) or "=")
  end
  return table.concat(out)
end
