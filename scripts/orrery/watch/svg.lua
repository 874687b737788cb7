-- SPDX-License-Identifier: Apache-2.0
--
-- Pictures as inline SVG. Colours are classes, which the page's style sheet gives for light and dark.
local directory = require "orrery.watch.directory"
local short, finite = directory.short, directory.finite

local M = {}

function M.escape(text)
  return (tostring(text):gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

local function open(width, height, title)
  return ('<svg viewBox="0 0 %d %d" role="img" aria-label="%s"><title>%s</title>'):format(width, height, M.escape(title),
    M.escape(title))
end

-- At most 600 points, each the mean of as many values as it stands for; one that is not finite breaks the line.
local function thinned(xs, ys)
  local n, points = #xs, {}
  local each = math.max(1, math.ceil(n / 600))
  for first = 1, n, each do
    local sum, count = 0, 0
    for i = first, math.min(n, first + each - 1) do
      sum, count = sum + ys[i], count + 1
    end
    points[#points + 1] = { xs[math.min(n, first + each - 1)], finite(sum) and sum / count or nil }
  end
  return points
end

local function extent(lines, k)
  local least, most = math.huge, -math.huge
  for _, line in ipairs(lines) do
    for _, p in ipairs(line.points) do
      if p[k] and (p[2] or k == 1) then least, most = math.min(least, p[k]), math.max(most, p[k]) end
    end
  end
  if least > most then return 0, 1 end
  if least == most then return least - math.abs(least) / 10 - 1e-9, most + math.abs(most) / 10 + 1e-9 end
  return least, most
end

-- lines: {{name =, xs =, ys =}}. `unit` stands behind the numbers of the axis. Where a line has a value that is not
-- finite there is a cross at the bottom.
function M.chart(title, lines, unit)
  local w, h, left, top, right, bottom = 640, 230, 64, 26, 12, 30
  for _, line in ipairs(lines) do line.points = thinned(line.xs, line.ys) end
  local x0, x1 = extent(lines, 1)
  local y0, y1 = extent(lines, 2)
  local function x(v) return left + (v - x0) / (x1 - x0) * (w - left - right) end
  local function y(v) return h - bottom - (v - y0) / (y1 - y0) * (h - top - bottom) end
  local out = { open(w, h, title), ('<text class="head" x="%d" y="16">%s</text>'):format(left, M.escape(title)) }
  for i = 0, 4 do
    local v, u = y0 + (y1 - y0) * i / 4, x0 + (x1 - x0) * i / 4
    out[#out + 1] = ('<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>'):format(left, w - right, y(v), y(v))
    out[#out + 1] = ('<text x="%d" y="%.1f" text-anchor="end">%s%s</text>'):format(left - 6, y(v) + 4, short(v), unit or "")
    out[#out + 1] = ('<text x="%.1f" y="%d" text-anchor="middle">%.0f</text>'):format(x(u), h - 12, u)
  end
  for i, line in ipairs(lines) do
    local path, pen = {}, "M"
    for _, p in ipairs(line.points) do
      if p[2] then
        path[#path + 1] = ("%s%.1f %.1f"):format(pen, x(p[1]), y(p[2]))
      else
        out[#out + 1] = ('<text class="t%d" x="%.1f" y="%d" text-anchor="middle">×<title>step %.0f: not finite</title></text>')
          :format((i - 1) % 6, x(p[1]), h - bottom - 2, p[1])
      end
      pen = p[2] and "L" or "M"
    end
    out[#out + 1] = ('<path class="line s%d" d="%s"/>'):format((i - 1) % 6, table.concat(path))
    out[#out + 1] = ('<text class="t%d" x="%d" y="%d" text-anchor="end">%s</text>'):format((i - 1) % 6, w - right,
      16 + 14 * (i - 1), #lines > 1 and M.escape(line.name) or "")
  end
  out[#out + 1] = "</svg>"
  return table.concat(out, "\n")
end

-- rows: {{label =, value =, text =}}, as bars of a common scale.
function M.bars(title, rows)
  local w, left, each = 640, 130, 22
  local h, most = 30 + each * #rows, 0
  for _, row in ipairs(rows) do most = math.max(most, row.value) end
  local out = { open(w, h, title), ('<text class="head" x="0" y="16">%s</text>'):format(M.escape(title)) }
  for i, row in ipairs(rows) do
    local y = 8 + each * i
    out[#out + 1] = ('<text x="%d" y="%d" text-anchor="end">%s</text>'):format(left - 6, y + 12, M.escape(row.label))
    out[#out + 1] = ('<rect class="f0" x="%d" y="%d" width="%.1f" height="16"/>'):format(left, y,
      most > 0 and row.value / most * 400 or 0)
    out[#out + 1] = ('<text x="%.1f" y="%d">%s</text>'):format(left + 6 + (most > 0 and row.value / most * 400 or 0), y + 12,
      M.escape(row.text))
  end
  out[#out + 1] = "</svg>"
  return table.concat(out, "\n")
end

-- rows: {{label =, spans = {{begin, end, class}}}} over [from, to]. Spans that touch and look alike become one, so that
-- a picture stays small.
function M.lanes(title, rows, from, to)
  local w, left, each = 640, 160, 20
  local h = 34 + each * #rows
  local function x(t) return left + (t - from) / (to - from) * (w - left - 4) end
  local out = { open(w, h, title), ('<text class="head" x="0" y="16">%s</text>'):format(M.escape(title)) }
  for i, row in ipairs(rows) do
    local y = 6 + each * i
    out[#out + 1] = ('<text x="%d" y="%d" text-anchor="end">%s</text>'):format(left - 6, y + 12, M.escape(row.label))
    out[#out + 1] = ('<rect class="idle" x="%d" y="%d" width="%d" height="16"/>'):format(left, y, w - left - 4)
    table.sort(row.spans, function(a, b) return a[1] < b[1] end)
    local open_span
    local function draw()
      if not open_span then return end
      out[#out + 1] = ('<rect class="%s" x="%.2f" y="%d" width="%.2f" height="16"/>'):format(open_span[3], x(open_span[1]), y,
        math.max(0.2, x(open_span[2]) - x(open_span[1])))
    end
    for _, span in ipairs(row.spans) do
      if open_span and open_span[3] == span[3] and x(span[1]) - x(open_span[2]) < 0.3 then
        open_span[2] = math.max(open_span[2], span[2])
      else
        draw()
        open_span = { span[1], span[2], span[3] }
      end
    end
    draw()
  end
  out[#out + 1] = "</svg>"
  return table.concat(out, "\n")
end

return M
