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
os.remove(path)
