-- SPDX-License-Identifier: Apache-2.0
--
-- Dataset:map, and the length of a dataset.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local data = orrery.data

local numbers = data.arrays { x = { 10, 20, 30, 40, 50 }, y = { 0, 1, 0, 1, 0 } }

local function values(set, name)
  local all = {}
  for _, batch in set:batches { size = 2, epochs = 1, shuffle = false } do
    for _, value in ipairs(batch[name or "x"]:read():tolist()) do all[#all + 1] = value end
  end
  return table.concat(all, " ")
end

local function refused(why, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and message:find(why, 1, true), message)
end

assert(orrery.tensor({ 104, 0, 105, 0, 0 }, "u8"):text() == "h\0i" and orrery.tensor({ 0 }, "u8"):text() == "")
refused("text: the tensor is u8[1,2], expected u8[n]", function() orrery.tensor({ { 1, 2 } }, "u8"):text() end)
assert(#numbers == 5 and #numbers:shard(1, 2) == 2 and #numbers:take { 1, 1 } == 2)
assert(#data.text("abcdefghi", { ctx = 3, string = true }) == 2)

-- Fields are those that the function returns, in the dims of one sample.
local made = numbers:map(function(sample)
  assert(#sample.x.shape == 0 and sample.x.dtype == "i64" and sample.z == nil)
  local x = sample.x:item()
  return { x = x / 4, pair = { x, -x }, kept = sample.y, u = orrery.tensor({ x }, "u8") }
end)
local batch = made:batch(2, { size = 2, shuffle = false })
assert(tostring(batch.x:read()) == "HostTensor f32[2] {7.5, 10.0}")
assert(tostring(batch.pair:read()) == "HostTensor i64[2,2] {30, -30, 40, -40}")
assert(tostring(batch.kept:read()) == "HostTensor i64[2] {0, 1}")
assert(tostring(batch.u:read()) == "HostTensor u8[2,1] {30, 40}")
assert(batch.y == nil and #made == 5)

-- As others, it is cut, dealt, filtered, mixed and mapped again.
assert(values(made:shard(1, 2)) == "5.0 10.0" and values(made:take { 5, 1 }) == "12.5 2.5")
assert(values(made:filter(function(sample) return sample.kept:item() == 1 end)) == "5.0 10.0")
assert(values(data.concat { made, made:take { 1 } }) == "2.5 5.0 7.5 10.0 12.5 2.5")
assert(values(made:map(function(sample) return { x = 2 * sample.x:item() } end)) == "5.0 10.0 15.0 20.0 25.0")
assert(values(numbers:shard(0, 2):map(function(sample) return { x = sample.x } end)) == "10 30 50")
local pixels = data.arrays { x = { { { { 1, 2 }, { 3, 4 } } } } }:map(function(s) return { x = s.x } end)
assert(pixels:augment({ crop = 1 }):batch(1, { size = 1 }).x:read().shape[4] == 1)
local letters = data.text("abcdefghi", { ctx = 3, string = true })
local shifted = letters:map(function(s) return { first = s.x:tolist()[1] } end)
assert(shifted:decode { shifted:batch(1, { size = 2, shuffle = false }).first:read():tolist()[2] } == "d")

-- Texts become tokens.
local kinds = data.jsonl("../../data/files/table.jsonl", { text = "kind" }, { dtypes = { text = "text" } })
local coded = kinds:map(function(sample)
  local bytes = { sample.text:text():byte(1, -1) }
  return { x = table.move(bytes, 1, 5, 1, {}), n = #bytes }
end)
assert(values(coded, "n") == "8 9 5 13" and coded:batch(1, { size = 2, shuffle = false }).x:read():tolist()[1][5] == 34)

-- A function is called once for all fields of a sample that is read.
local calls = 0
local counted = numbers:map(function(sample)
  calls = calls + 1
  return { a = sample.x, b = sample.y }
end)
local three = counted:batch(1, { size = 3 })
three.a:read()
three.b:read()
assert(calls == 1 + 3, calls)

-- Random numbers are those of seed, epoch and sample; each map has its own.
local function noisy(set) return set:map(function(s, random) return { x = s.x, r = random(1000), f = random() } end) end
local first, second = noisy(numbers), noisy(numbers)
local function drawn(set, options)
  local all = {}
  for _, each in set:batches(options) do
    local x, r, f = each.x:read():tolist(), each.r:read():tolist(), each.f:read():tolist()
    for i = 1, #x do all[#all + 1] = ("%d:%d:%.6f"):format(x[i], r[i], f[i]) end
  end
  return all
end
local one = drawn(first, { size = 2, steps = 5, seed = 3 })
assert(table.concat(one, " ") == table.concat(drawn(first, { size = 5, steps = 2, seed = 3 }), " "))
assert(table.concat(one, " ", 7) == table.concat(drawn(first, { size = 2, steps = 5, from = 4, seed = 3 }), " "))
assert(table.concat(one, " ") ~= table.concat(drawn(second, { size = 2, steps = 5, seed = 3 }), " "))
local seen = {}
for _, text in ipairs(one) do
  assert(not seen[text], "the epochs differ")
  seen[text] = true
end

-- A training that stops and goes on has the bits of one that does not.
local function make()
  local net = nn.linear(1, 1, { bias = false })
  net.weight:write { { 3.0 } }
  return net, orrery.compile(function(b) return nn.mse(net(b.x:view(-1, 1)), b.f:view(-1, 1)) end,
    { params = net, optimizer = optim.sgd { lr = 0.0001 } })
end
local set = first:map(function(s) return { x = s.x:item() / 1, f = s.f } end)
local function training(steps, path, save)
  local net, run = make()
  if path and not save then run:load(path) end
  for _, each in set:batches { size = 2, steps = steps, from = run.steps + 1 } do run:step(each) end
  if save then run:save(path) end
  return orrery.digest(net)
end
local path = os.tmpname()
os.remove(path)
local whole = training(9)
training(4, path, true)
assert(training(9, path) == whole)
os.execute(("rm -rf '%s'"):format(path))

-- Errors name the line and the sample.
local function only_first(value, other)
  return numbers:map(function(s) return { x = s.x:item() == 10 and value or other } end):batch(1, { size = 5 }).x:read()
end
refused("map.lua:", only_first, 1, 1.5)
refused("map: sample ", only_first, 1, 1.5)
refused("field 'x' is f32[], of the first sample i64[]", only_first, 1, 1.5)
refused("field 'x' is i64[3], of the first sample i64[2]", only_first, { 1, 2 }, { 1, 2, 3 })
refused("field 'x': 'text' given, expected a HostTensor, a number or a list", only_first, 1, "text")
refused("map: sample 1: field 'x': 'text' given", only_first, "text", 1)
refused("map: sample 1: the function returned nil, expected a sample", numbers.map, numbers, function() end)
refused("map: sample 1: the function returned a list", numbers.map, numbers, function() return { 1 } end)
refused("map.lua:", numbers.map, numbers, function() error "torn" end)
refused("torn (map: sample 1)", numbers.map, numbers, function() error "torn" end)
refused("map: sample 4: it has the fields z, the first sample x", function()
  numbers:map(function(s) return { x = s.x:item() ~= 40 and 1 or nil, z = s.x:item() == 40 and 1 or nil } end)
    :take({ 4 }):batch(1, { size = 1 }).x:read()
end)
refused("workers is 2, but functions of Dataset:map", numbers.batches, made, { size = 2, workers = 2 })
refused("map: inside a coroutine", coroutine.wrap(function() numbers:map(function(s) return s end) end))
