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

-- A part of a shard without samples has no batches.
local ok, why = pcall(data.split, data:shard(2, 3), 0.4)
assert(not ok and why:find("split: 1 samples do not fill 3 shards", 1, true), why)
