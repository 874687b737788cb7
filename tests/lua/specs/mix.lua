-- SPDX-License-Identifier: Apache-2.0
--
-- data.mix: weights are shares, no sample is left out, and what cannot be mixed is named.
local data = require "orrery".data

local function numbers(n, first)
  local list = {}
  for i = 1, n do list[i] = first + i end
  return data.arrays { x = list }
end

-- How often each number occurs in an epoch, which has `n` samples.
local function epoch(mixed, n)
  assert(mixed.samples == n, mixed.samples)
  local seen = {}
  for _, x in ipairs(mixed:batch(1, { size = n }).x:read():tolist()) do seen[x] = (seen[x] or 0) + 1 end
  return seen
end

local seen = epoch(data.mix({ numbers(30, 0), numbers(5, 100) }, { 1, 3 }), 120)
for i = 1, 30 do assert(seen[i] == 1) end
for i = 101, 105 do assert(seen[i] == 18) end
assert(epoch(data.mix({ numbers(1, 0), numbers(2, 100) }, { 1.25, 1 }), 5)[1] == 3, "2.5 is rounded up")

local function refused(parts, weights, part)
  local ok, why = pcall(data.mix, parts, weights)
  assert(not ok and why:find(part, 1, true), why)
end
local one = numbers(3, 0)
refused({}, {}, "mix: 0 parts and 0 weights")
refused({ one }, { 1, 2 }, "mix: 1 parts and 2 weights: give one weight for each part")
refused({ one }, { "1" }, "mix: a weight is '1', expected a number")
refused({ one }, { 0 / 0 }, "every weight is a number above 0")
refused({ one }, { 0 }, "mix: weight 1 is 0: every weight is a number above 0")
refused({ one, one }, { 1, math.huge }, "mix: weight 2 is inf: every weight is a number above 0")
refused({ one, one }, { 1, 1e17 }, "mix: weight 2 is 1e+17: an epoch would have more than 2^53 samples")
refused({ one, data.from(function() end) }, { 1, 1 }, "mix: part 2 is a Stream, expected a dataset")
refused({ one:shard(0, 2) }, { 1 }, "mix: a part is sharded; shard the result of mix instead")
