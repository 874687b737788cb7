-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local data = orrery.data

-- i = 1..n, with lists of i numbers.
local function counting(n)
  return function()
    local i = 0
    return function()
      i = i + 1
      if i > n then return nil end
      local list = {}
      for k = 1, i do list[k] = i end
      return { i = i, list = list, half = i / 2 }
    end
  end
end

local function numbers(stream, options)
  local all = {}
  for _, batch in stream:batches(options) do
    for _, i in ipairs(batch.i:tolist()) do all[#all + 1] = i end
  end
  return table.concat(all, " ")
end

-- In order, again from the beginning at the end, and from anywhere.
local plain = data.from(counting(5), { pad = { list = 0 } })
assert(numbers(plain, { size = 2, steps = 4 }) == "1 2 3 4 5 1 2 3")
assert(numbers(plain, { size = 2, steps = 4, from = 3 }) == "5 1 2 3")

-- Types, and lists filled up to the longest.
for _, batch in data.from(counting(5), { pad = { list = -1 }, dtypes = { i = "i32" } }):batches { size = 3, steps = 1 } do
  assert(batch.i.dtype == "i32" and batch.half.dtype == "f32" and batch.list.dtype == "i64")
  assert(batch.list.shape[2] == 3 and batch.list:tolist()[1][2] == -1 and batch.list:tolist()[3][3] == 3)
end

-- Shuffled: every sample once in an epoch's length, give or take those that wait; the same with the same seed.
local function mixed(seed) return data.from(counting(100), { shuffle = 10, seed = seed, pad = { list = 0 } }) end
local first = numbers(mixed(1), { size = 10, steps = 9 })
assert(first == numbers(mixed(1), { size = 10, steps = 9 }) and first ~= numbers(mixed(2), { size = 10, steps = 9 }))
local seen = {}
for i in first:gmatch "%d+" do
  assert(not seen[i])
  seen[i] = true
end
assert(numbers(mixed(1), { size = 10, steps = 9, from = 9 }) == first:match "(%d+ %d+ %d+ %d+ %d+ %d+ %d+ %d+ %d+ %d+)$")

-- Bucketed: a batch has one length, and nothing is lost.
local lengths, count = {}, 0
for _, batch in data.from(counting(6), { pad = { list = 0 }, lengths = { 2, 4, 6 } }):batches { size = 4, steps = 6 } do
  local length = batch.list.shape[2]
  lengths[length] = (lengths[length] or 0) + 1
  for _, i in ipairs(batch.i:tolist()) do
    assert(i <= length and i > length - 2)
    count = count + 1
  end
end
assert(count == 24 and lengths[2] == 2 and lengths[4] == 2 and lengths[6] == 2)

-- What would be left out without a word is an error.
local function refused(part, call, ...)
  local ok, why = pcall(call, ...)
  assert(not ok and why:find(part, 1, true), why)
end
local function of_two(first, second, options)
  local stream = data.from(function()
    local at = 0
    return function()
      at = at + 1
      return ({ first, second })[at]
    end
  end, options)
  stream:batches { size = 2 }()
end
refused("data.from: a sample has 'y', which the first one of its batch has not", of_two, { x = 1 }, { x = 2, y = 3 })
refused("data.from: dtypes has 'z', which the first sample", of_two, { x = 1 }, { x = 2 }, { dtypes = { z = "i32" } })
refused("shuffle is 1.5, expected an integer", data.from, print, { shuffle = 1.5 })
for name, value in pairs { size = 1.5, from = 0, steps = "2" } do
  local options = { size = 1 }
  options[name] = value
  refused("batches: " .. name .. " is ", plain.batches, plain, options)
end

-- Trained on.
local net = orrery.nn.linear(1, 1)
local run = orrery.compile(function(b) return orrery.nn.mse(net(b.half:reshape { -1, 1 }), b.half:reshape { -1, 1 }) end,
  { params = net, optimizer = orrery.optim.sgd { lr = 0.1 } })
local before
for step, batch in data.from(function()
  local function sample() return { half = math.pi / 4 } end
  return sample
end):batches { size = 4, steps = 20 } do
  local loss = run:step(batch):mean()
  before = before or loss
  assert(step < 20 or loss < before / 2 or loss < 1e-6)
end
