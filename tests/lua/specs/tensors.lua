-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local x = orrery.tensor { { 1, 2, 3 }, { 4, 5, 6 } }
assert(x.dtype == "i64" and tostring(x.shape) == "[2,3]" and x.shape[-1] == 3 and #x.shape == 2)
local list = x:tolist()
assert(list[2][3] == 6 and math.type(list[2][3]) == "integer")
assert(orrery.tensor({ 0.5, 1 }).dtype == "f32")
assert(orrery.tensor(7):item() == 7 and orrery.tensor(0.5):item() == 0.5)
assert(orrery.tensor({ 1, 2 }, "bf16"):tolist()[2] == 2.0)
assert(orrery.tensor({ 9007199254740993 }):item() == 9007199254740993)

local path = os.tmpname()
x:save(path)
assert(orrery.load(path):tolist()[1][3] == 3)
for _, dtype in ipairs { "f32", "f64", "f16", "i32", "i64", "u8", "bool" } do
  local made = orrery.tensor({ { 1, 0, 1 }, { 0, 0, 1 } }, dtype)
  made:save(path)
  local file = io.open(path, "rb")
  local size = file:seek "end"
  file:close()
  assert((size - #orrery.engine.bytes(made)) % 64 == 0, "data begins at a multiple of 64")
  assert(tostring(orrery.load(path)) == tostring(made), dtype)
end
local both = orrery.data.arrays { x = path, y = { 7, 8 } }:batch(1, { size = 2, shuffle = false })
assert(orrery.data.open("npy", path, { whole = 1.0 }).samples == 1, "a whole number is one, however it is written")
assert(orrery.data.open("npy", path, { field = "7" }):batch(1, { size = 1 })["7"], "digits stay a text")
assert(both.x:read():tolist()[2][3] == true and both.y:read():tolist()[2] == 8)
os.remove(path)
assert(select(2, pcall(orrery.tensor({ 1 }, "bf16").save, orrery.tensor({ 1 }, "bf16"), path)):find "no bf16")
assert(select(2, pcall(x.save, x, "/nowhere/x.npy")):find "cannot write: ")

-- Numbers that a dtype does not hold.
local function refused(value, dtype, why)
  local ok, said = pcall(orrery.tensor, { value }, dtype)
  assert(not ok and said:find(why, 1, true), said)
end
refused(300, "u8", "the value 300 does not fit into u8; ask for a wider dtype")
refused(-1, "u8", "the value -1 does not fit into u8")
refused(2 ^ 31, "i32", "the value 2147483648 does not fit into i32")
refused(1.5, "i32", "element")
refused(0 / 0, "i64", "element")
assert(orrery.tensor({ 255.0, 0 }, "u8"):tolist()[1] == 255 and orrery.tensor({ -2 ^ 31 }, "i32"):item() == -2 ^ 31)

-- Programs hold numbers as f64: an integer that is none is refused where it would be rounded.
local large = (1 << 53) + 1
local id = orrery.tensor({ large, large - 1 }, "i64")
local function rounded(f)
  local ok, why = pcall(f)
  assert(not ok and why:find("the number 9007199254740993 would be rounded to 9007199254740992", 1, true), why)
end
rounded(function() return orrery.func(function(x) return x:eq(large) end)(id) end)
rounded(function() return orrery.func(function(x) return x + orrery.full({ 2 }, large, "i64") end)(id) end)
rounded(function() return orrery.buffer({ 2 }, { init = large, dtype = "i64" }) end)
local same = orrery.func(function(x, y) return x:eq(y) end)(id, orrery.tensor(large, "i64")):tolist()
assert(same[1] and not same[2])
assert(orrery.func(function(x) return x + math.mininteger end)(orrery.tensor({ 5 }, "i64")):item() == math.mininteger + 5)
