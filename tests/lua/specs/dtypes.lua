-- SPDX-License-Identifier: Apache-2.0
--
-- Numbers at the edges of their dtypes: what PyTorch gives, or what the dtype holds.
local orrery = require "orrery"
local nn = orrery.nn
local inf, nan = math.huge, 0 / 0

local function same(what, got, want)
  got, want = type(got) == "table" and got or { got }, type(want) == "table" and want or { want }
  assert(#got == #want, what)
  for i, x in ipairs(want) do
    assert(got[i] == x or got[i] ~= got[i] and x ~= x, ("%s: element %d is %s, expected %s"):format(what, i, got[i], x))
  end
end
local function call(f, values, dtype)
  local y = orrery.func(f)(orrery.tensor(values, dtype))
  return y:tolist(), y.dtype
end
local function slope(f)
  return function(x) return orrery.grad(f(x):sum(), { x })[1] end
end

-- 0^0 and x^0 are flat, and no infinity times 0.
same("0^x", call(slope(function(x) return orrery.zeros_like(x):pow(x) end), { 0, 2, -1 }, "f32"), { 0, 0, -inf })
same("number^x", call(slope(function(x) return (x * 0 + 0) ^ x end), { 2, 3 }, "f64"), { 0, 0 })
same("x^0", call(slope(function(x) return x:pow(orrery.zeros_like(x)) end), { 0, 2, -3 }, "f32"), { 0, 0, 0 })
-- No power of x overflows where gelu's slope is 0 or 1.
for _, dtype in ipairs { "f32", "bf16", "f64" } do
  same("gelu's slope", call(slope(function(x) return x:gelu() end), { 1e30, -1e30, inf }, dtype), { 1, 0, 1 })
  same("gelu's curvature", call(slope(slope(function(x) return x:gelu() end)), { 1e30, -1e20 }, dtype), { 0, 0 })
end
same("gelu's slope", call(slope(function(x) return x:gelu() end), { 1e200, nan }, "f64"), { 1, nan })

-- What an i32 does not hold becomes the smallest one, as of an i64: NaN is no class 0.
local least = -2147483648
same("as i32", call(function(x) return x:cast "i32" end, { nan, inf, -inf, 3e9, -3e9, 2147483520, -2147483648, -1.5 }, "f32"),
  { least, least, least, least, least, 2147483520, least, -1 })
same("as i32", call(function(x) return x:cast "i32" end, { -2147483648.5, 2147483647.5, 1e300 }, "f64"), { least, 2147483647, least })
same("as i64", call(function(x) return x:cast "i64" end, { nan, 1e19, -1e19 }, "f32"),
  { math.mininteger, math.mininteger, math.mininteger })

-- A number that an integer dtype does not hold does not wrap: arithmetic with it is that of i64.
local bytes = { 0, 44, 255 }
local values, dtype = call(function(x) return x + 300 end, bytes, "u8")
same("u8 + 300", values, { 300, 344, 555 })
assert(dtype == "i64")
same("u8 < 300", call(function(x) return x:lt(300):cast "i32" end, bytes, "u8"), { 1, 1, 1 })
same("u8 == -1", call(function(x) return x:eq(-1):cast "i32" end, bytes, "u8"), { 0, 0, 0 })
same("i32 < 3e9", call(function(x) return x:lt(3000000000):cast "i32" end, { -1, 5 }, "i32"), { 1, 1 })
same("bool == 2", call(function(x) return x:eq(2):cast "i32" end, { true, false }, "bool"), { 0, 0 })
assert(select(2, call(function(x) return x + 1 end, bytes, "u8")) == "u8")
for _, wrong in ipairs { { 300, "u8" }, { -1, "u8" }, { 2 ^ 31, "i32" }, { 1.5, "i64" }, { inf, "i64" } } do
  local ok, message = pcall(orrery.func(function(x) return x + orrery.full({ 1 }, wrong[1], wrong[2]) end), { 1 })
  assert(not ok and tostring(message):find "does not fit into", message)
end

assert(not pcall(call, function(x) return x + 9007199254740993 end, bytes, "i64")) -- no double

assert(not pcall(call, function() return orrery.iota(257, "u8") end, bytes, "u8"))
for _, wrong in ipairs { { 300, "u8" }, { 1e10, "i32" }, { 1.5, "i64" }, { 9007199254740993, "i64" } } do
  assert(not pcall(orrery.buffer, { 2 }, { init = wrong[1], dtype = wrong[2] }))
end

-- Sums of integers are i64; neither dtype of 16 bits holds the other.
values, dtype = call(function(x) return x:sum() + orrery.zeros({ 1 }, "i64") end, { 2147483647, 2147483647 }, "i32")
same("a sum of i32", values, { 4294967294 })
same("a running sum", call(function(x) return x:cumsum(1) end, { 200, 100, 0 }, "u8"), { 200, 300, 300 })
same("a count", call(function(x) return x:cumsum(1) end, { true, false, true }, "bool"), { 1, 1, 2 })
values, dtype = call(function(x) return x + x:cast "bf16" end, { 1.0009765625 }, "f16")
same("f16 + bf16", values, { 2.0009765625 })
assert(dtype == "f32")
values, dtype = call(function(x) return (x:sort()) end, { 3, 255, 0, 7 }, "u8")
same("sorted bytes", values, { 0, 3, 7, 255 })
assert(dtype == "u8")
assert(select(2, call(function(x) return (x:sort()) end, { true, false }, "bool")) == "bool")

-- Nothing has no largest element; it has a sum, and is added to nothing.
for _, f in ipairs { "max", "min", "argmax" } do
  local ok, message = pcall(call, function(x) return x[f](x) end, {}, "f32")
  assert(not ok and tostring(message):find(f .. ": there is none in f32[0]", 1, true), message)
end
same("an empty sum", call(function(x) return x:sum():reshape(1) end, {}, "f32"), { 0 })
same("no rows", call(function(x) return orrery.ones { 2, 1 }:scatter_add(x:cast "i64", x:reshape(0, 1)):reshape(2) end, {}, "f32"), { 1, 1 })
assert(not pcall(call, function() return orrery.zeros { -1, 3 } end, {}, "f32"))

-- Means, variances and pools of f16 whose sums and squares it does not hold.
local large = {}
for i = 1, 1000 do large[i] = i % 2 == 0 and 400 or 100 end
same("mean", call(function(x) return x:mean():reshape(1) end, large, "f16"), { 250 })
same("var", call(function(x) return x:var(1, { correction = 0 }):reshape(1) end, large, "f16"), { 22496 }) -- of 22500
same("logsumexp", call(function(x) return (x * 0):logsumexp():reshape(1) end, large, "bf16"), { 6.90625 })
local ones = {}
for i = 1, 1000 do ones[i] = 1 end
same("cumsum", { call(function(x) return x:cumsum(1) end, ones, "bf16")[1000] }, { 1000 })
same("avg_pool", call(function(x) return nn.avg_pool1d(4)(x:reshape(1, 1, 4)):reshape(1) end, { 3e4, 3e4, 3e4, 3e4 }, "f16"), { 30000 })
same("gelu_exact", call(nn.gelu_exact, { -3, 3 }, "bf16"), { -0.004058837890625, 3 })

-- The square of a gradient of 16 bits: an own loop's update is that of compile, in f32.
local layer = nn.module("layer", function(m)
  m.w = nn.parameter({ 1 }, { dtype = "f16", init = nn.init.ones })
  return function() return m.w end
end)()
orrery.optim.adam { lr = 0.5 }:attach(layer):update { orrery.tensor({ 1000 }, "f16") }
same("adam in f16", layer.w:read():tolist(), { 0.5 })
assert(not pcall(orrery.parameter, { 1 }, { dtype = "i64" })) -- steps of the optimizer were truncated
for _, clip in ipairs { -1, nan } do
  assert(not pcall(orrery.compile, function() end, { params = layer, optimizer = orrery.optim.sgd {}, clip = clip }))
end
