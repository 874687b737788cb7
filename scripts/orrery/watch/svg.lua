-- SPDX-License-Identifier: Apache-2.0
--
-- Pictures as inline SVG. Colours are classes, which the page's style sheet gives for light and dark.
local M = {}

function M.escape(text)
  return (tostring(text):gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

local function open(width, height, title)
  return ('<svg viewBox="0 0 %d %d" role="img" aria-label="%s"><title>%s</title>'):format(width, height, M.escape(title),
    M.escape(title))
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
