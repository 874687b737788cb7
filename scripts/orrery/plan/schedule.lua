-- SPDX-License-Identifier: Apache-2.0
--
-- The schedule of a pipeline as a picture: a row for each stage, time to the right, the F, B and W actions with the
-- number of their microbatch, and idle times. `schedule`: by stage its actions, as docs/plan.md has them.
local M = {}

local columns = 150 -- the most that a row has

local function facts(schedule)
  local found = { units = 0, busy = 0, split = false, digits = 0 }
  for _, stage in ipairs(schedule) do
    for _, action in ipairs(stage) do
      local segment, microbatch, _, first, last = table.unpack(action)
      found.units = math.max(found.units, math.floor(last))
      found.busy = found.busy + last - first
      found.split = found.split or segment == "W"
      found.digits = math.max(found.digits, #tostring(microbatch))
    end
  end
  return found
end

local function caption(schedule, found)
  local all = found.units * #schedule
  return ("bubble %.1f %% of the step, %.1f %% over the work (forward 1, backward %s, messages 0)"):format(
    100 * (all - found.busy) / all, 100 * (all - found.busy) / found.busy, found.split and "1, weight 1" or "2")
end

-- The picture for a terminal. If it is wider than a terminal, the rest is left out, and a line says so.
function M.text(schedule)
  local found = facts(schedule)
  local width = found.digits + 1
  if found.units * (width + 1) > columns then width = 0 end  -- no room for the numbers of microbatches
  local shown = math.min(found.units, columns // (width + 1))
  local cell, lines = "%-" .. width + 1 .. "s", {}
  for number, stage in ipairs(schedule) do
    local row = {}
    for t = 1, shown do row[t] = cell:format "." end
    for _, action in ipairs(stage) do
      local segment, microbatch, _, first, last = table.unpack(action)
      for t = math.floor(first) + 1, math.min(math.floor(last), shown) do
        row[t] = cell:format(width > 0 and segment .. microbatch or segment)
      end
    end
    lines[number] = ("  stage %-3d %s\n"):format(number - 1, (table.concat(row):gsub(" +$", "")))
  end
  if shown < found.units then lines[#lines + 1] = ("  ... %d of %d time units shown\n"):format(shown, found.units) end
  return table.concat(lines) .. "  " .. caption(schedule, found) .. "\n"
end

local colors = { F = "#7aa6da", B = "#e78c45", W = "#b5bd68" }
local unit, height, left, top = 26, 26, 64, 8

local head = [[
<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">
<rect width="100%%" height="100%%" fill="white"/>
]]
local box = '<rect x="%.14g" y="%d" width="%.14g" height="%d" fill="%s" stroke="white"><title>%s%d of chunk %d</title>'
  .. '</rect><text x="%.14g" y="%d" text-anchor="middle">%d</text>\n'

-- The whole picture as an SVG document.
function M.svg(schedule)
  local found = facts(schedule)
  local bottom = top + #schedule * height + 30
  local parts = { head:format(left + found.units * unit + 8, bottom) }
  for number, stage in ipairs(schedule) do
    local y = top + (number - 1) * height
    parts[#parts + 1] = ('<text x="6" y="%d">stage %d</text>\n'):format(y + 17, number - 1)
    for _, action in ipairs(stage) do
      local segment, microbatch, chunk, first, last = table.unpack(action)
      local x, width = left + first * unit, (last - first) * unit
      parts[#parts + 1] = box:format(x, y, width, height - 2, colors[segment], segment, microbatch, chunk,
        x + width / 2, y + 16, microbatch)
    end
  end
  parts[#parts + 1] = ('<text x="6" y="%d">%s</text>\n</svg>\n'):format(bottom - 8, caption(schedule, found))
  return table.concat(parts)
end

return M
