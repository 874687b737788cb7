-- SPDX-License-Identifier: Apache-2.0
--
-- The text about the traffic of a kind of ranks: bytes by rank, every collective with its bytes and cause, copies
-- between memory tiers, and the bytes that strategies predict.
local words = require "orrery.plan.words"

local M = {}

-- Exchanges whose lines would be equal, as one, with the sums of their times and bytes.
local function joined(exchanges)
  local found, at = {}, {}
  for _, e in ipairs(exchanges) do
    local key = table.concat({ e.op, e.elements, e.dtype, e.origin, e.where or "", e.name, e.times, e.tensors or 0 },
      "|")
    local one = at[key]
    if one then
      one.times, one.sent_bytes = one.times + e.times, one.sent_bytes + e.sent_bytes
    else
      one = {}
      for name, value in pairs(e) do one[name] = value end
      at[key], found[#found + 1] = one, one
    end
  end
  return found
end

local function exchange_text(e)
  local text = ("    %-12s %s%s  %d x %s"):format(e.name, e.times == 1 and "" or e.times .. " x ", e.op, e.elements,
    e.dtype)
  if e.tensors then text = ("%s  %d tensors  %s"):format(text, e.tensors, words.count(e.nodes, "node")) end
  local where = e.where and "(" .. e.where .. ")" or ""
  return ("%s  sends %d bytes  by %s %s\n"):format(text, e.sent_bytes, e.origin, where)
end

local function collectives_text(traffic, what)
  if #traffic.exchanges == 0 then
    return traffic.driven_by
      and ("  sends   what strategy.%s says above, at times of its own\n"):format(traffic.driven_by)
      or "  sends nothing\n"
  end
  local lines = {}
  for _, sent in ipairs(traffic.sends) do
    lines[#lines + 1] = ("  sends   %14d bytes %s in %s%s\n"):format(sent.bytes, what,
      words.count(traffic.operations, "operation"), #traffic.sends == 1 and "" or ", " .. words.ranks(sent.ranks))
  end
  for _, e in ipairs(joined(traffic.exchanges)) do lines[#lines + 1] = exchange_text(e) end
  return table.concat(lines)
end

-- `what`: what the plan carries out, such as "a step".
function M.text(traffic, what)
  local lines = { collectives_text(traffic, what) }
  for _, c in ipairs(traffic.copies) do
    lines[#lines + 1] = ("  copies  %14d bytes a step from %s and %d back, in %d copies\n"):format(c.read_bytes,
      c.tier == "disk" and "disk" or "host memory", c.written_bytes, c.copies)
  end
  for _, p in ipairs(traffic.predicted or {}) do
    lines[#lines + 1] = ("  predicted by %s: %d bytes sent%s\n"):format(p.strategy, p.bytes,
      p.bytes == p.counted and ", as counted" or ", but counted " .. p.counted)
  end
  return table.concat(lines)
end

return M
