-- SPDX-License-Identifier: Apache-2.0
--
-- What `orrery plan --search` prints.
local duration = require "orrery.plan.words".duration
local layouts = require "orrery.search.layouts"

local M = {}

local function size(bytes)
  local unit = bytes < 2 ^ 30 and 20 or 30
  return ("%.1f %s"):format(bytes / 2 ^ unit, unit == 20 and "MiB" or "GiB")
end

local function title(l)
  local words = {}
  for _, axis in ipairs { "pipe", "data", "context", "expert", "tensor" } do
    if l[axis] > 1 then words[#words + 1] = ("%s %d"):format(axis, l[axis]) end
  end
  local said = { #words > 0 and table.concat(words, " x ") or "one rank", ("%d microbatches"):format(l.microbatches) }
  local function add(...) said[#said + 1] = string.format(...) end
  if type(l.schedule) == "string" then add("%s%s", l.schedule, l.chunks and " of " .. l.chunks or "") end
  if l.zero > 0 then add("zero %d%s", l.zero, l.zero_each and " of each" or "") end
  if l.kind then add("%s", l.kind) end
  if l.sequence then add "sequence" end
  if l.vocab == false then add "whole vocabulary" end
  if l.recompute then add("%srecompute", l.recompute == "selective" and "selective " or "") end
  return table.concat(said, ", ")
end
M.title = title

-- Why a layout takes longer than another: the part of the ranks' time that grows most.
local function why(better, worse)
  local most, part = 0, nil
  local seen = {}
  for _, found in ipairs { better, worse } do
    for name in pairs(found.plan.time) do seen[name] = true end
  end
  for name in pairs(seen) do
    local more = (worse.plan.time[name] or 0) * worse.plan.seconds - (better.plan.time[name] or 0) * better.plan.seconds
    if more > most or (more == most and part and name < part) then most, part = more, name end
  end
  if not part then return "as fast" end
  return ("%s more, %s of %s"):format(duration(worse.plan.seconds - better.plan.seconds), duration(most), part)
end

local function literal(value) return type(value) == "string" and ("%q"):format(value) or tostring(value) end

local function options_text(options)
  local words = {}
  for name, value in pairs(options) do words[#words + 1] = name .. " = " .. literal(value) end
  table.sort(words)
  return #words > 0 and "{ " .. table.concat(words, ", ") .. " }" or "{}"
end

-- The options of orrery.compile that make this layout.
function M.stack_text(l, template)
  local lines = { ("microbatches = %d,"):format(l.microbatches), "strategy = {" }
  for _, entry in ipairs(layouts.entries(l, template)) do
    lines[#lines + 1] = ("  strategy.%s %s,"):format(entry.name, options_text(entry.options))
  end
  lines[#lines + 1] = "},"
  return table.concat(lines, "\n")
end

local function counts_text(found)
  local lines = {
    ("search: %d layouts of %d ranks, %d planned, %d refused"):format(found.all, found.ranks, found.planned,
      found.refused),
  }
  local function add(...) lines[#lines + 1] = "  " .. string.format(...) end
  if found.cannot_fit > 0 then add("%d cannot fit: parameters and states alone are larger", found.cannot_fit) end
  if found.too_large > 0 then add("%d were planned and do not fit", found.too_large) end
  if found.cannot_win > 0 then add("%d cannot be among the ten: a bound says that they take longer", found.cannot_win) end
  if found.twins > 0 then add("%d seem to be plans that were made, with an option that makes no difference", found.twins) end
  if found.left > 0 then
    add("%d were not planned, because an estimate, which is no proof, puts them behind (--seconds 0 plans them)", found.left)
  end
  for reason, n in pairs(found.reasons) do found.reasons[#found.reasons + 1] = ("%d refused: %s"):format(n, reason) end
  table.sort(found.reasons)
  for _, text in ipairs(found.reasons) do add("%s", text) end
  return lines
end

-- How many of the best differ by no more than what such times may be off beside each other.
local function ties(found)
  local shown, first = math.min(10, #found.best), found.best[1]
  if not found.error or not first then return nil end
  local count = 1
  while count < shown and found.best[count + 1].plan.seconds <= (1 + found.error) * first.plan.seconds do
    count = count + 1
  end
  if count == 1 then return nil end
  return ("the first %d are within %.3g %%, by which the machine's file may be wrong about an order: a tie"):format(count,
    100 * found.error)
end

-- `all`: with the stacks of all that are shown.
function M.text(found, template, all)
  local lines = counts_text(found)
  for i = 1, math.min(10, #found.best) do
    local one = found.best[i]
    lines[#lines + 1] = ("%3d  %s  %s  mfu %.3g %%  %s"):format(i, duration(one.plan.seconds), size(one.plan.bytes),
      100 * one.plan.mfu, title(one.layout))
    if i > 1 then lines[#lines + 1] = "     " .. why(found.best[i - 1], one) end
    if all then lines[#lines + 1] = M.stack_text(one.layout, template) end
  end
  if #found.best > 0 then
    lines[#lines + 1] = ties(found)
    if not all then
      lines[#lines + 1] = "the first, for orrery.compile (--details prints all):"
      lines[#lines + 1] = M.stack_text(found.best[1].layout, template)
    end
  end
  return table.concat(lines, "\n")
end

return M
