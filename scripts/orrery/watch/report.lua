-- SPDX-License-Identifier: Apache-2.0
--
-- `orrery report DIR... [-o FILE]`: one HTML page about one or several runs, with nothing outside of it.
local _, orrery = ...
local charted = require "orrery.watch.charted"
local directory = require "orrery.watch.directory"
local files = require "orrery.files"
local svg = require "orrery.watch.svg"
local base64 = require "orrery.watch.base64"
local escape, short = svg.escape, directory.short

-- rows of cells, of which all but the first stand to the right; {text =, class =} is a cell of words.
local function table_of(heads, rows)
  local out = { "<table><tr>" }
  for i, head in ipairs(heads) do
    local words = i == 1 or rows[1] and type(rows[1][i]) == "table"
    out[#out + 1] = ('<th%s>%s</th>'):format(words and "" or ' class="n"', escape(head))
  end
  out[#out + 1] = "</tr>"
  for _, row in ipairs(rows) do
    out[#out + 1] = row.differs and '<tr class="differs">' or "<tr>"
    for i, cell in ipairs(row) do
      local words = type(cell) == "table"
      local class = words and cell.class or i > 1 and "n"
      out[#out + 1] = ('<td%s>%s</td>'):format(class and (' class="%s"'):format(class) or "", escape(words and cell.text or cell))
    end
    out[#out + 1] = "</tr>"
  end
  out[#out + 1] = "</table>"
  return table.concat(out)
end

-- What the ranks' lanes did in the last step that was noted.
local phases = { forward = "f0", backward = "f1", weights = "f2", update = "f4", before = "f5" }

local function lanes(events)
  local step, names, rows, from, to = 0, {}, {}, math.huge, 0
  for _, e in ipairs(events) do
    if e.ph == "X" then step = math.max(step, e.args.step) end
    if e.ph == "M" and e.name == "thread_name" then names[e.pid * 1000 + e.tid] = e.args.name end
  end
  for _, e in ipairs(events) do
    if e.ph == "X" and e.args.step == step and e.name ~= "batch" then
      local key = e.pid * 1000 + e.tid
      rows[key] = rows[key] or { label = ("rank %d %s"):format(e.pid, names[key] or ""), spans = {} }
      from, to = math.min(from, e.ts), math.max(to, e.ts + e.dur)
      if e.name ~= "wait" then
        table.insert(rows[key].spans, { e.ts, e.ts + e.dur, e.tid > 0 and "f3" or phases[e.cat] or "f5" })
      end
    end
  end
  local list = {}
  for _, row in pairs(rows) do
    if #list < 64 then list[#list + 1] = row end
  end
  if #list == 0 then return "" end
  return svg.lanes(("Step %d, %.2f ms"):format(step, (to - from) / 1e3), list, from, to)
    .. '<p class="note"><span class="t0">■</span> forward <span class="t1">■</span> backward '
    .. '<span class="t2">■</span> gradients of weights <span class="t4">■</span> update '
    .. '<span class="t3">■</span> exchange; empty: the lane waits or has nothing to do</p>'
end

local function first_of(list, n) return table.move(list, 1, math.min(n, #list), 1, {}) end

local function times(run)
  local events = directory.trace(run)
  local sums = directory.sums(events)
  if sums.steps == 0 then
    return '<p class="note">This run has no trace.json, so there is nothing to say about single ops: let it take more '
      .. "steps, or choose them by --observe trace=FIRST:LAST.</p>"
  end
  local shares, ops, exchanges, ranks, computed, window = {}, {}, {}, 0, 0, 0
  for rank, sum in pairs(sums.ranks) do
    ranks, computed, window = ranks + 1, computed + sum.compute, window + sum.window
    shares[#shares + 1] = { "rank " .. rank, ("%.3f"):format(sum.compute * 1e3 / sums.steps),
      ("%.3f"):format(sum.wait * 1e3 / sums.steps), ("%.1f %%"):format(100 * (1 - sum.compute / sum.window)) }
  end
  local each = sums.steps * ranks
  for _, op in ipairs(first_of(sums.ops, 15)) do
    ops[#ops + 1] = { op.name, ("%.1f"):format(op.calls / each), ("%.3f"):format(op.seconds * 1e3 / each),
      ("%.1f %%"):format(100 * op.seconds / computed), op.flops > 0 and short(op.flops / op.seconds) or "" }
  end
  for _, e in ipairs(first_of(sums.exchanges, 15)) do
    exchanges[#exchanges + 1] = { e.name, ("%.1f"):format(e.calls / each), ("%.3f"):format(e.seconds * 1e3 / each),
      short(e.bytes / each, true), e.bytes > 0 and short(e.bytes / e.seconds, true) .. "/s" or "" }
  end
  local out = { lanes(events),
    ("<p>Of the time of %d noted steps, %.1f %% is bubble: time in which a rank's compute lane ran no op.</p>")
      :format(sums.steps, 100 * (1 - computed / window)),
    table_of({ "", "compute, ms a step", "waits", "bubble" }, shares),
    "<h3>Time by op</h3>", table_of({ "op", "calls", "ms a step", "share", "FLOP/s" }, ops) }
  if #exchanges > 0 then
    out[#out + 1] = "<h3>Time by exchange</h3>"
      .. table_of({ "exchange", "calls", "ms a step", "bytes sent", "rate" }, exchanges)
  end
  return table.concat(out, "\n")
end

local function memory(run)
  local rows = {}
  for name, bytes in pairs(run.facts[0] or {}) do
    local category = name:match "^plan/memory/(.*)"
    if category and tonumber(bytes) then rows[#rows + 1] = { label = category, value = bytes, text = short(bytes, true) } end
  end
  table.sort(rows, function(a, b) return a.value > b.value end)
  return #rows > 0 and svg.bars("Memory of rank 0 when it is fullest", rows) or ""
end

local function beside(run)
  local facts, rows = run.facts[0] or {}, {}
  local function row(what, planned, counted)
    if tonumber(planned) and counted then
      rows[#rows + 1] = { what, ("%.0f"):format(planned), ("%.0f"):format(counted), differs = planned ~= counted }
    end
  end
  row("arena of rank 0, bytes", facts["plan/arena_bytes"], directory.last(run, "arena_bytes"))
  row("sent by rank 0 in the last step, bytes", facts["plan/bytes_sent"], directory.last(run, "bytes_sent"))
  return table_of({ "", "planned", "counted" }, rows)
end

-- Of a file in a run's directory; nil if it is not there.
local function picture_of(run, one)
  local inner = type(one.image) == "string" and one.image:match "^images/[%w_.-]+%.png$"
  local file <close> = inner and io.open(run.path .. "/" .. inner, "rb") or nil
  return file and '<img alt="' .. escape(one.name) .. '" src="data:image/png;base64,' .. base64(file:read "a") .. '">'
end

local function bars_of(one)
  local h, rows = one.histogram, {}
  if type(h) ~= "table" or type(h.counts) ~= "table" or not tonumber(h.least) or not tonumber(h.most) then return nil end
  for i, count in ipairs(h.counts) do
    local width = (h.most - h.least) / #h.counts
    rows[i] = { label = short(h.least + (i - 1) * width), value = tonumber(count) or 0, text = short(count) }
  end
  return svg.bars(one.name, rows)
end

-- The last text, image and histogram of each name.
local function recorded(run)
  local out = {}
  for _, one in ipairs(directory.records(run)) do
    local shown = one.text and "<pre>" .. escape(one.text) .. "</pre>" or picture_of(run, one) or bars_of(one)
    if shown then
      out[#out + 1] = ("<h3>%s</h3><p class=\"note\">step %d</p>%s"):format(escape(one.name), one.step, shown)
    end
  end
  return #out > 0 and "<h2>Recorded by " .. escape(run.name) .. "</h2>" .. table.concat(out, "\n") or ""
end

local function configuration(runs)
  local names, rows = {}, {}
  for _, run in ipairs(runs) do
    for name in pairs(run.facts[0] or {}) do
      if name:match "^run/" or name:match "^config/" or name:match "^machine/" then names[name] = true end
    end
  end
  for name in pairs(names) do
    local row = { name }
    for i, run in ipairs(runs) do
      local value = (run.facts[0] or {})[name]
      row[i + 1] = value == nil and "" or tostring(value)
      row.differs = row.differs or row[i + 1] ~= row[2]
    end
    if name == "run/begin" or name == "run/end" then
      for i = 2, #row do
        local seconds = tonumber(row[i])
        row[i] = seconds and os.date("!%Y-%m-%d %H:%M:%S UTC", math.floor(seconds)) or ""
      end
    end
    rows[#rows + 1] = row
  end
  local heads = { "" }
  for _, run in ipairs(runs) do heads[#heads + 1] = run.name end
  return table_of(heads, rows)
end

local function clock(seconds)
  local s = math.floor(seconds + 0.5)
  return ("%d:%02d:%02d"):format(s // 3600, s // 60 % 60, s % 60)
end

-- How the runs go or have ended, and their last numbers.
local function states(runs)
  local rows = {}
  for _, run in ipairs(runs) do
    local loss, ending, facts = run.series.loss, directory.ending(run), run.facts[0] or {}
    local last = 0
    for _, series in pairs(run.series) do last = math.max(last, series.times[#series.times] or 0) end
    local begun = tonumber(facts["run/begin"])
    rows[#rows + 1] = { run.name, { text = ending, class = ending:match "^%a+" }, loss and loss.steps[#loss.steps] or 0,
      loss and directory.shown(loss.values[#loss.values], function(v) return ("%.4f"):format(v) end) or "",
      short(directory.last(run, "tokens_per_second") or directory.last(run, "samples_per_second") or 0),
      begun and last >= begun and clock(last - begun) or "" }
  end
  return table_of({ "run", "state", "steps", "last loss", "tokens or samples/s", "time" }, rows)
end

local controls = [[
<nav><label>axis <select id="axis"><option>step</option><option>time</option><option>samples</option></select></label>
<label><input type="checkbox" id="logX"> logarithmic axis</label>
<label><input type="checkbox" id="logY"> logarithmic values</label>
<label>smoothing <input type="range" id="smoothing" min="0" max="0.99" step="0.01" value="0"> <span id="smoothed">0.00</span></label>
<label>charts <input type="search" id="filter" placeholder="words of names"></label>
<button id="reset" disabled>whole axis</button><span id="runs"></span></nav>
<noscript><p>The charts need JavaScript, which is in this page. The numbers are in metrics.jsonl of each run.</p></noscript>
<p class="note">Drag over a chart to see a part of the axis on all of them; a double click shows the whole again. A cross marks
a value that is not finite.</p>
<div id="charts"></div><div id="tip" hidden></div>]]

-- The parts of the page that are files of their own.
local function part(name) return files.installed(orrery.engine.library() .. "/orrery/watch/page/" .. name) end

local function scripts(runs)
  local out = { '<script type="application/json" id="data">' .. charted(runs) .. "</script>\n<script>" }
  for _, name in ipairs { "scale", "lines", "pointer", "chart", "main" } do out[#out + 1] = part(name .. ".js") end
  return table.concat(out, "\n") .. "</script>"
end

local function page(runs)
  local names = {}
  for _, run in ipairs(runs) do names[#names + 1] = run.name end
  local title = "Orrery: " .. (#names > 3 and #names .. " runs" or table.concat(names, ", "))
  local out = { '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    .. '<meta name="viewport" content="width=device-width">\n<title>' .. escape(title) .. "</title>\n<style>\n"
    .. part "style.css" .. "</style></head>\n<body><h1>" .. escape(title) .. "</h1>", states(runs), controls, "<section>" }
  for _, run in ipairs(runs) do out[#out + 1] = recorded(run) end
  for _, run in ipairs(runs) do
    out[#out + 1] = "<h2>Where the time of " .. escape(run.name) .. " goes</h2>" .. times(run) .. memory(run)
      .. "<h3>Plan beside what was counted</h3>" .. beside(run)
  end
  out[#out + 1] = "</section><h2>Configuration</h2>" .. configuration(runs) .. scripts(runs) .. "</body></html>\n"
  return table.concat(out, "\n")
end

-- Runs are named by their paths, without the directories that all of them have in common.
local function name_by_path(runs)
  local function split(path)
    local parts = {}
    for each in path:gmatch "[^/]+" do parts[#parts + 1] = each end
    return parts
  end
  local all, common = {}, math.huge
  for i, run in ipairs(runs) do
    all[i] = split(run.path)
    common = math.min(common, #all[i] - 1)
  end
  for i = 2, #all do
    local same = 0
    while same < common and all[i][same + 1] == all[1][same + 1] do same = same + 1 end
    common = same
  end
  for i, run in ipairs(runs) do run.name = table.concat(all[i], "/", math.max(1, common + 1)) end
end

-- Without `output`, to standard output.
return function(o)
  local runs = {}
  for _, path in ipairs(o.directory) do
    local run = directory.open(path)
    runs[#runs + 1] = run
    for _, inner in ipairs(directory.further(run)) do runs[#runs + 1] = directory.open(inner) end
  end
  name_by_path(runs)
  local text = page(runs)
  if not o.output then
    io.write(text)
    return
  end
  files.write(o.output, text, "-o")
  print(("wrote %s, %s"):format(o.output, short(#text, true)))
end
