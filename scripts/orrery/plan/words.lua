-- SPDX-License-Identifier: Apache-2.0
--
-- How plans write bytes, times, counts and ranks.
local M = {}

local units = { "KiB", "MiB", "GiB", "TiB", "PiB" }

-- 1536 -> "1.5 KiB".
function M.size(bytes)
  local unit = 0
  while bytes >= 1024 and unit < #units do bytes, unit = bytes / 1024, unit + 1 end
  if unit == 0 then return ("%.0f B"):format(bytes) end
  return (bytes < 100 and "%.1f %s" or "%.0f %s"):format(bytes, units[unit])
end

function M.duration(seconds)
  return seconds < 1 and ("%.4g ms"):format(seconds * 1e3) or ("%.4g s"):format(seconds)
end

-- "1 sample", "3 samples".
function M.count(n, thing) return ("%d %s%s"):format(n, thing, n == 1 and "" or "s") end

-- "rank 3", "ranks 0-2, 5": of runs { first, last } the first few.
function M.ranks(runs)
  local few, all, words = 8, 0, {}
  for i, run in ipairs(runs) do
    all = all + run[2] - run[1] + 1
    if i <= few then words[i] = run[1] == run[2] and ("%d"):format(run[1]) or ("%d-%d"):format(run[1], run[2]) end
  end
  if #runs > few then words[few + 1] = ("... (%d in all)"):format(all) end
  return (all == 1 and "rank " or "ranks ") .. table.concat(words, ", ")
end

return M
