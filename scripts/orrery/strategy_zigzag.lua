-- SPDX-License-Identifier: Apache-2.0
--
-- The parts of sequences that the ranks of an axis work on: of n ranks, rank i has the i-th part of n, or, in zigzag
-- order, the two halves i and 2n-1-i of 2n. Under a causal mask parts in zigzag order give every rank the same work
-- with the part of any other (as in Zhu, "ring-flash-attention", 2024, and Grattafiori et al., arXiv:2407.21783).
-- A part is [batch, halves, places, width]; in its natural order it has one half.
local _, orrery = ...

local Parts = {}
Parts.__index = Parts

local M = {}

-- For ops that are added now. Lists of ranks say where the first and the second half of each rank's natural part,
-- 2i and 2i+1, go to, and back.
function M.parts(axis, ranks, zigzag)
  local p = setmetatable({ axis = axis, ranks = ranks, halves = zigzag and 2 or 1, me = orrery.coordinate(axis) }, Parts)
  if not zigzag then return p end
  p.there, p.back = { {}, {} }, { {}, {} }
  for i = 0, 2 * ranks - 1 do
    local rank, to = i // 2, i < ranks and i or 2 * ranks - 1 - i
    p.there[i % 2 + 1][rank + 1], p.back[i % 2 + 1][to + 1] = to, rank
  end
  p.half, p.odd = orrery.iota(2), p.me % 2
  return p
end

-- This rank's part of x [batch, time, width]. On a rank of even number the half of even number comes first.
function Parts:of(x)
  local batch, time, width = table.unpack(x.shape)
  x = x:reshape(batch, self.ranks, time // self.ranks, width):slice_at(2, self.me, 1)
  x = x:reshape(batch, self.halves, time // self.ranks // self.halves, width)
  if self.halves == 1 then return x end
  local even = x:slice(2, 1, 1):ppermute(self.axis, { to = self.there[1] })
  local odd = x:slice(2, 2, 2):ppermute(self.axis, { to = self.there[2] })
  return orrery.where(self.half:reshape(1, 2, 1, 1):eq(self.odd), even, odd)
end

-- The sequence of which each rank has the part x.
function Parts:whole(x)
  local batch, halves, places, width = table.unpack(x.shape)
  if halves == 2 then
    local even, odd = x:slice_at(2, self.odd, 1), x:slice_at(2, 1 - self.odd, 1)
    x = orrery.concat({ even:ppermute(self.axis, { to = self.back[1] }), odd:ppermute(self.axis, { to = self.back[2] }) }, 2)
  end
  return x:reshape(batch, halves * places, width):all_gather(self.axis, { dim = 2 })
end

-- The pairs {half of queries, half of keys} that are to meet under a causal mask, all of the one seeing all of the
-- other, where the keys are those of the rank `hop` places before this one, round in the ring. Of an earlier rank
-- both halves of queries see the first half of keys, of a later one the second sees both.
function Parts:pairs(hop)
  if self.halves == 1 then return { { 0, 0 } } end
  local same = orrery.where(self.me:ge(hop), 0, 1):cast "i64"
  return { { 1, 0 }, { same, same } }
end

function Parts:pick(x, half)
  if self.halves == 1 then return x end
  return type(half) == "number" and x:slice(2, half + 1, half + 1) or x:slice_at(2, half, 1)
end

-- A tensor of both halves: x in one, `rest` in the other.
function Parts:put(x, half, rest)
  if self.halves == 1 then return x end
  local dims = { 1, 2 }
  for i = 3, #x.shape do dims[i] = 1 end
  return orrery.where(self.half:reshape(table.unpack(dims)):eq(half), x, rest)
end

return M
