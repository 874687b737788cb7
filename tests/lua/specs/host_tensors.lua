-- SPDX-License-Identifier: Apache-2.0
--
-- HostTensors outside of traced functions: operators, methods and modules compute at once, with the bits of a compiled
-- function; places and ranges by x[...] are those of plain loops.
local orrery = require "orrery"
local nn = orrery.nn
local engine = orrery.engine

local function bits(t) return t.dtype .. tostring(t.shape) .. engine.bytes(t) end
local function same(what, a, b) assert(bits(a) == bits(b), ("%s: %s is not %s"):format(what, tostring(a), tostring(b))) end
local function says(text, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(message:find(text, 1, true), ("%s\ndoes not say: %s"):format(message, text))
end

local numbers = {}
for i = 1, 3 do
  numbers[i] = {}
  for j = 1, 4 do numbers[i][j] = math.sin(3 * i + j) end
end

local cases = {
  function(x) return x * 0.1 end, function(x) return 0.1 * x end, function(x) return x + 3 end, function(x) return 3 - x end,
  function(x) return x / 3 end, function(x) return 1 / x end, function(x) return x % 0.3 end, function(x) return (x * x) ^ 1.5 end,
  function(x) return -x end, function(x) return x + x:transpose():transpose() end, function(x) return x:sum() end,
  function(x) return x:sum(1, { keep = true }) end, function(x) return x:mean { 1, 2 } end, function(x) return x:max(2) end,
  function(x) return x:softmax() end, function(x) return x:matmul(x, { transpose_b = true }) end, function(x) return x:gt(0.1) end,
  function(x) return x:reshape(4, 3) end, function(x) return x:view { 2, -1 } end, function(x) return x:cast "i32" end,
  function(x) return x:gt(0):select(x, 0) end, function(x) return orrery.where(x:gt(0), x, -x) end,
  function(x) return orrery.concat({ x, x + 1 }, 1) end, function(x) return orrery.stack { x, x } end,
  function(x) return (select(2, x:sort(1, { descending = true }))) end, function(x) return (select(3, x:split(2, { 1, 2, 1 }))) end,
  function(x) return nn.mse(x, x * 0.5) end, function(x) return nn.gelu(x) end, function(x) return x:var(2, { correction = 0 }) end,
}
for _, dtype in ipairs { "f32", "f64", "f16", "bf16" } do
  local x = orrery.tensor(numbers, dtype)
  for i, f in ipairs(cases) do same(("case %d of %s"):format(i, dtype), f(x), orrery.func(f)(x)) end
end
local whole = orrery.tensor { { 7, -3 }, { 1 << 60, 5 } }
for i, f in ipairs {
  function(x) return x + 3 end, function(x) return x * -2 end, function(x) return 1 - x end, function(x) return x / 2 end,
  function(x) return x * 0.5 end, function(x) return x % 4 end, function(x) return x:eq(5) end, function(x) return x:sum() end,
} do
  same("integers " .. i, f(whole), orrery.func(f)(whole))
  same("i32 " .. i, f(whole:cast "i32"), orrery.func(f)(whole:cast "i32"))
end
assert((orrery.tensor({ 1.0 }, "f64") * 0.1):item() == 0.1)

-- Places and ranges.
local x = orrery.tensor(numbers, "f64")
local function element(i, j) return numbers[i][j] end
local function is(t, dims, list)
  assert(tostring(t.shape) == dims, tostring(t.shape))
  local found = t:reshape(#list):tolist()
  for k, value in ipairs(list) do assert(found[k] == value, k) end
end
local in_trace = orrery.func(function(t) return t[2], t[{ {}, -1 }], t[{ { 3, 1, -2 }, { 2, 4, 2 } }], t[{ -1, { 2, 3 } }] end)
local function places(t) return t[2], t[{ {}, -1 }], t[{ { 3, 1, -2 }, { 2, 4, 2 } }], t[{ -1, { 2, 3 } }] end
for _, found in ipairs { { places(x) }, { in_trace(x) } } do
  is(found[1], "[4]", numbers[2])
  is(found[2], "[3]", { element(1, 4), element(2, 4), element(3, 4) })
  is(found[3], "[2,2]", { element(3, 2), element(3, 4), element(1, 2), element(1, 4) })
  is(found[4], "[2]", { element(3, 2), element(3, 3) })
end
assert(x[2][3]:item() == element(2, 3) and x[{ 3, 1 }]:item() == element(3, 1) and #x == 3 and #x[1] == 4)
assert(orrery.tensor({ { 1, 300 } }, "i32")[{ 1, 2 }]:item() == 300 and orrery.tensor({ true, false }, "bool")[1]:item() == true)
for wrong, key in pairs {
  ["place 4 of dim 1 does not exist: it has 3 elements"] = 4, ["place 0 of dim 1"] = 0, ["place -4 of dim 1"] = -4,
  ["3 dims given, the tensor has 2"] = { 1, 1, 1 }, ["a range of 1 numbers"] = { { 1 } }, ["from 2 to 1 there is no step of 1"] = { { 2, 1 } },
  ["a table with the key 'x'"] = { x = 1 }, ["place 5 of dim 2"] = { 1, { 2, 5 } }, ["there is no step of 0"] = { { 1, 2, 0 } },
  ["1.5"] = 1.5, ["a list with nothing at place 1"] = { nil, 2 },
} do
  says(wrong, function() return x[key] end)
  says(wrong, function() return orrery.func(function(t) return t[key] end)(x) end)
end
says("write x:gather(ids)", function() return x[orrery.tensor { 1 }] end)
says("a tensor without dims has no length", function() return #x:sum() end)

-- In a traced function a HostTensor is a constant, of which methods and operators are traced.
same("a constant", orrery.func(function(t) return t * x:sum(1) + x[1] + 1 end)(x), x * x:sum(1) + x[1] + 1)

-- Modules, traced again where they have changed.
local model = nn.sequential { nn.linear(4, 3), nn.tanh, nn.dropout(0.5), nn.linear(3, 2) }
local input = x:cast "f32"
same("a module", model(input), orrery.func(function(t) return model(t) end)(input))
local before = model(input)
model[1].weight:write(model[1].weight:read() * 2)
assert(bits(model(input)) ~= bits(before))
model[1].bias = nn.parameter({ 3 }, { init = nn.init.constant(0.25) })
same("a replaced part", model(input), orrery.func(function(t) return model(t) end)(input))
local settings = { factor = 2 }
local Own = nn.module("Own", function(m)
  m.first = nn.linear(4, 4)
  return function(t, times) return m.first(t) * settings.factor * (times or 1), t end
end)
local own = Own()
local first = own(input)
settings.factor = 4
same("a changed value", own(input), first * 2)
same("a number", own(input, 0.5), first)
assert(select("#", own(input)) == 2)

-- They do not count among the script's functions, whose random numbers depend on how many there are.
local function drawn(between)
  orrery.seed(7)
  between()
  return orrery.func(function() return orrery.uniform { 4 } end)()
end
same("random numbers", drawn(function() end), drawn(function() return x * 3, own(input, 3.5) end))

-- What is not computed at once.
says("belongs into a traced function", function() return orrery.uniform(x) end)
says("write parameter:read() for what it is now", function() return model[1].weight * input end)
says("tensors are computed only while a function is traced", function() return model[1].weight * 2 end)
says("write input.value for what it is now", function() return input * orrery.input("host_tensors.k", 1) end)

-- Errors name the line of the call, also where another line has compiled the same before.
local labels = orrery.tensor { 0, 1, 1 }
orrery.cross_entropy(input, labels)
local place = ":" .. debug.getinfo(1, "l").currentline + 1 .. ":"
says(place, function() return orrery.cross_entropy(input, labels + 9) end)

-- More operations than are kept.
for i = 1, 700 do
  local found = orrery.tensor({ 2.0 }, "f64") ^ (1 / i)
  assert(math.abs(found:item() - 2 ^ (1 / i)) < 1e-12)
end
