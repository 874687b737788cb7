-- SPDX-License-Identifier: Apache-2.0
--
-- Numbers of a script that f16 does not hold: arithmetic with them is that of f32, rounded once, as in PyTorch.
local orrery = require "orrery"

local function half(values) return orrery.tensor(values, "f16") end
local function call(f, ...) return orrery.func(f)(...):tolist() end
local function same(got, expected)
  for i, x in ipairs(expected) do assert(got[i] == x, ("element %d is %s, expected %s"):format(i, got[i], x)) end
end
local inf = math.huge

-- The mask of attention that everybody writes: 0 where the mask is 1.
same(call(function(m) return (1 - m) * -1e9 end, half { 1, 0, 0.5 }), { 0, -inf, -inf })
same(call(function(s, m) return (s + (1 - m) * -1e9):softmax() end, half { { 1, 1, 1 } }, half { { 1, 0, 1 } })[1],
  { 0.5, 0, 0.5 })
same(call(function(x) return x * 1e-8 end, half { 65504, 0 }), { 0.00065517425537109375, 0 })
same(call(function(x) return x * 1e5 end, half { 0.25, -0.5 }), { 24992, -49984 })
same(call(function(x) return x:clamp(-1e9, 1e9) end, half { 3, -7 }), { 3, -7 })
same(call(function(x) return x:gt(-1e9):cast "f32" end, half { 3, -65504 }), { 1, 1 })
same(call(function(c, x) return c:eq(1):select(x, -1e9) end, half { 1, 0 }, half { 2, 2 }), { 2, -inf })
assert(orrery.func(function(x) return x * -1e9 end)(half { 1 }).dtype == "f16")

-- Its derivative as well.
local slope = 0.0005998611450195312
same(call(function(x) return orrery.grad((x * 1e-8 * 60000):sum(), { x })[1] end, half { 2, 3 }), { slope, slope })
