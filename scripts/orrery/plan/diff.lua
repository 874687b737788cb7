-- SPDX-License-Identifier: Apache-2.0
--
-- What `orrery plan --diff` prints: for each strategy a summary, and a unified diff of ops.
local words = require "orrery.plan.words"
local size = words.size

local M = {}

local context = 2 -- equal lines around a change
local longest = 8 -- lines of a run that are shown

-- The hunks of a unified diff, with long runs of lines shortened; "" if no op was added or removed. `lines`: of all
-- ops, each after ' ', '-' or '+'.
function M.hunks(lines)
  local out, shown = {}, 0 -- shown: the last line that has been put out
  local function put(from, to)
    for i = from, to do out[#out + 1] = lines[i] end
  end
  local function sign(i) return lines[i] and lines[i]:sub(1, 1) end
  local function run(from, to)
    local left_out = to - from + 1 - longest
    if left_out <= 0 then return put(from, to) end
    put(from, from + longest - 2)
    out[#out + 1] = ("%s... %d more"):format(sign(from), left_out)
    put(to, to)
  end
  local i = 1
  while i <= #lines do
    local last = i
    while sign(last + 1) == sign(i) do last = last + 1 end
    if sign(i) ~= " " then
      local from = math.max(shown + 1, i - context, 1)
      if from > shown + 1 or shown == 0 then out[#out + 1] = ("@@ op %d @@"):format(from) end
      put(from, i - 1)
      run(i, last)
      shown = last
      while shown < last + context and sign(shown + 1) == " " do
        shown = shown + 1
        put(shown, shown)
      end
    end
    i = last + 1
  end
  return #out > 0 and table.concat(out, "\n") .. "\n" or ""
end

local function summary(e)
  return ("strategy.%s on %s: %s added, %d removed, %d of other sizes; sends %s a step (before: %s); "
    .. "memory %s (before: %s)\n"):format(e.strategy, words.count(e.ranks, "rank"), words.count(e.added, "op"),
    e.removed, e.resized, size(e.sent_bytes[2]), size(e.sent_bytes[1]), size(e.memory_bytes[2]),
    size(e.memory_bytes[1]))
end

function M.text(diff)
  local parts = { ("diff: rank %d of %d, one process first\n"):format(diff.rank, diff.ranks) }
  for _, entry in ipairs(diff.entries) do parts[#parts + 1] = summary(entry) .. M.hunks(entry.lines) end
  return table.concat(parts)
end

return M
