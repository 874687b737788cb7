-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local data = orrery.data.arrays { x = { { 1, 2 }, { 3, 4 }, { 5, 6 } }, y = { 0, 1, 2 } }
assert(data.samples == 3)
local batch = data:batch(1, { size = 2, shuffle = false })
assert(batch.x:read():tolist()[2][1] == 3 and batch.y:read():tolist()[2] == 1)
local shard = data:shard(1, 2)
assert(shard.samples == 1 and shard:batch(1, { size = 1 }).y:read():item() == 1)

-- A field is given where a tensor is.
local doubled = orrery.func(function(x) return x * 2 end)
assert(doubled(batch.x):tolist()[2][2] == 8)

-- The parts of a shard have its samples, and no shard's are empty.
local function ids(part)
  return table.concat(part:batch(1, { size = part.samples, shuffle = false }).y:read():tolist(), " ")
end
local eleven = orrery.data.arrays { y = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 } }
for rank, wanted in ipairs { "0 2 | 4 6 8 10", "1 3 | 5 7 9" } do
  local first, rest = eleven:shard(rank - 1, 2):split(0.5)
  assert(ids(first) .. " | " .. ids(rest) == wanted, ids(first) .. " | " .. ids(rest))
end
local words = orrery.data.text("abcdefghijklmnopqrstuvwxyz", { ctx = 2, string = true }):shard(1, 2)
local _, rest = words:split(0.5)
assert(words:decode(rest:batch(1, { size = 1, shuffle = false }).x:read():tolist()[1]) == "op")

local function refused(part, call, ...)
  local ok, why = pcall(...)
  assert(not ok and why:find(call .. ": " .. part, 1, true), why)
end
local half = orrery.data.arrays { y = { 1, 2, 3, 4, 5 } }:shard(0, 2)
refused("1 samples do not fill 2 shards", "split", data.split, half, 0.9)
refused("3 samples do not fill 4 shards", "shard", data.shard, data, 0, 4)
for _, fraction in ipairs { 0, 1, -1, 0 / 0, 1e300 } do
  refused("the fraction is ", "split", data.split, data, fraction)
end
refused("step 4611686018427387904 and size 3: more samples than can be counted", "batches", data.batch, data, 1 << 62,
  { size = 3 })
local ok, why = pcall(data.batch, data, 1, { size = 1 << 60 })
assert(not ok and why:find "arrays.lua:%d+: there is not enough memory", why)
