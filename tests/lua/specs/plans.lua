-- SPDX-License-Identifier: Apache-2.0
-- The texts of plans that need no plan: hunks of a diff, the search for a microbatch that fits, sizes, ranks.
local hunks, fit = require "orrery.plan.diff".hunks, require "orrery.plan.fit"
local words = require "orrery.plan.words"

local function check(got, expected) assert(got == expected, ("%q, not %q"):format(got, expected)) end

local function lines(text)
  local list = {}
  for line in text:gmatch "[^,]+" do list[#list + 1] = line end
  return list
end

check(hunks(lines " a, b, c,+X, d,-e, f, g"), "@@ op 2 @@\n b\n c\n+X\n d\n-e\n f\n g\n")
check(hunks(lines "+X, a, b, c, d, e, f, g, h,-i"), "@@ op 1 @@\n+X\n a\n b\n@@ op 8 @@\n g\n h\n-i\n")
check(hunks(lines " a, b, c"), "")
check(hunks(lines "-a,-b,-c,-d,-e,-f,-g,-h,-i,-j,-k"), "@@ op 1 @@\n-a\n-b\n-c\n-d\n-e\n-f\n-g\n-... 3 more\n-k\n")

-- Peaks that fall, that fall and rise again, and that are refused in between, against trying all.
local peaks = {
  { 900, 800, 700, 600, 500, 400, 300, 200, 100 }, { 900, 500, 300, 350, 400, 600, 700, 800, 850 },
  { 900, 800, false, 600, 500, false, 300, 200, 100 }, { 900, 800, 300, false, 280, 270, 260, 250, 240 }, { 100 },
}
for _, bytes in ipairs(peaks) do
  local facts = { samples = 1000, one_by_one = true, counts = {} }
  for i = 1, #bytes do facts.counts[i] = 10 * i end
  local function peak(count)
    local size = bytes[count // 10]
    return size and { bytes = size, rank = 3 } or { bytes = math.huge, refused = "refused" }
  end
  for limit = 50, 950, 50 do
    local fewest
    for i = #bytes, 1, -1 do
      if bytes[i] and bytes[i] <= limit then fewest = 10 * i end
    end
    local found, said = fit(facts, limit, peak)
    assert(found == fewest, ("limit %d: %s, not %s"):format(limit, found, fewest))
    local pattern = found and ("^fit: .* %%(microbatches = %d%%)"):format(found) or "nothing fits; .* too much: add"
    assert(said:find(pattern), said)
  end
end
local _, why = fit({ samples = 4, one_by_one = false, counts = { 1 } }, 10, function() return { bytes = 20, rank = 1 } end)
check(why, "--fit 10 B: nothing fits; 4 samples a microbatch (microbatches = 1) take 20 B on rank 1, "
  .. "10 B too much: run microbatches one after another, add ranks, or shard states")

check(words.size(1023), "1023 B")
check(words.size(1536), "1.5 KiB")
check(words.size(52429), "51.2 KiB")
check(words.size(100 * 2 ^ 30), "100 GiB")
check(words.ranks { { 0, 2 }, { 5, 5 } }, "ranks 0-2, 5")
check(words.ranks { { 3, 3 } }, "rank 3")
local many = {}
for i = 1, 10 do many[i] = { 2 * i, 2 * i } end
check(words.ranks(many), "ranks 2, 4, 6, 8, 10, 12, 14, 16, ... (10 in all)")
