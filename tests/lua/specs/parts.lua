-- SPDX-License-Identifier: Apache-2.0
--
-- Datasets of some samples of others: take, filter, concat; of arrays, shards, windows of text and JSON lines.
local orrery = require "orrery"
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

assert(values(numbers:take { 5, 1, 1 }) == "50 10 10" and values(numbers:take { 2, 4 }, "y") == "1 1")
assert(values(numbers:take { 5, 3, 1 }:take { 2, 1 }) == "30 50")
assert(values(numbers:shard(1, 2)) == "20 40" and values(numbers:shard(1, 2):take { 2, 1 }) == "40 20")
local head, tail = numbers:take { 4, 3, 2, 1 }:split(0.5)
assert(values(head) == "40 30" and values(tail) == "20 10")
refused("take: position 6 of 5 samples: the first is 1", numbers.take, numbers, { 6 })
refused("take: position 0 of 5 samples", numbers.take, numbers, { 0 })
refused("take: the list is empty", numbers.take, numbers, {})

local seen = 0
local ones = numbers:filter(function(sample)
  seen = seen + 1
  assert(#sample.x.shape == 0)
  return sample.y:item() == 1
end)
assert(values(ones) == "20 40" and seen == 5)
refused("filter: none of 5 samples is kept", numbers.filter, numbers, function() return nil end)

assert(values(data.concat { ones, numbers, ones }) == "20 40 10 20 30 40 50 20 40")
refused("concat: the list is empty", data.concat, {})
refused("concat: part 2 is 7, expected a dataset", data.concat, { numbers, 7 })
refused("same fields", data.concat, { numbers, data.arrays { x = { 1 } } })

refused("concat: a part is sharded", data.concat, { numbers, numbers:shard(0, 2) })
refused("mix: a part is sharded", data.mix, { numbers, numbers:shard(0, 2) }, { 1, 1 })

local text = data.text("abcdefghi", { ctx = 3, string = true })
local windows = text:take { 2, 1 }:batch(1, { size = 2, shuffle = false })
assert(text:decode(windows.x:read():tolist()[1]) == "def" and text:decode(windows.y:read():tolist()[2]) == "bcd")

local lines = data.jsonl("../../data/files/table.jsonl", { x = "a", n = "nested", y = "kind" }, { dtypes = { y = "class" } })
assert(values(lines) == "1.0 -2.0 3.0 4.0" and lines.classes[3] == 'say "hi"')
assert(#lines:batch(1, { size = 1 }).n.shape == 3 and lines:batch(1, { size = 1 }).n.shape[3] == 3)
assert(values(lines:filter(function(sample) return sample.x:item() > 1 end)) == "3.0 4.0")
refused("jsonl: dtypes: unknown option 'z'", data.jsonl, "x", { x = "a" }, { dtypes = { z = "i32" } })
