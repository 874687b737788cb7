-- SPDX-License-Identifier: Apache-2.0
--
-- `orrery top DIR`: a run as one screen of the terminal, drawn again when its directory changes; --once draws one
-- screen, --svg FILE writes it as a picture.
local directory = require "orrery.watch.directory"
local files = require "orrery.files"
local svg = require "orrery.watch.svg"
local short, finite = directory.short, directory.finite

local width = 78
local levels = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }

-- The last values as a line of blocks; each stands for as many values as are needed to fit, "!" for some of which one
-- is not finite.
local function spark(series, columns)
  local values, n = series.values, #series.steps
  local each = math.max(1, math.ceil(n / columns))
  local points, least, most = {}, math.huge, -math.huge
  for first = 1, n, each do
    local sum, count = 0, 0
    for i = first, math.min(n, first + each - 1) do sum, count = sum + values[i], count + 1 end
    points[#points + 1] = sum / count
    if finite(sum) then least, most = math.min(least, sum / count), math.max(most, sum / count) end
  end
  for i, v in ipairs(points) do
    points[i] = finite(v) and levels[most > least and 1 + math.floor((v - least) / (most - least) * 7.999) or 4] or "!"
  end
  return table.concat(points)
end

local function clock(seconds)
  local s = math.floor(seconds + 0.5)
  if s >= 3600 then return ("%d:%02d:%02d"):format(s // 3600, s // 60 % 60, s % 60) end
  return ("%02d:%02d"):format(s // 60, s % 60)
end

local function bar(share, columns)
  local full = math.floor(math.max(0, math.min(1, share)) * columns + 0.5)
  return ("█"):rep(full) .. ("░"):rep(columns - full)
end

local rows = {
  { "loss", "loss", function(v) return ("%.4f"):format(v) end },
  { "tokens_per_second", "tokens/s", short }, { "samples_per_second", "samples/s", short },
  { "grad_norm", "grad norm", function(v) return ("%.3g"):format(v) end },
  { "learning_rate", "lr", function(v) return ("%.3g"):format(v) end },
  { "mfu", "mfu", function(v) return ("%.1f %%"):format(100 * v) end },
  { "resident_bytes", "memory", function(v) return short(v, true) end },
  { "seconds", "step time", function(v) return ("%.1f ms"):format(1e3 * v) end },
  { "data_seconds", "data wait", function(v) return ("%.1f ms"):format(1e3 * v) end },
  { "checkpoint_seconds", "saving", function(v) return ("%.1f ms"):format(1e3 * v) end },
  { "arena_bytes", "arena", function(v) return short(v, true) end },
  { "bytes_sent", "sent a step", function(v) return short(v, true) end },
}

-- Which step the run is at, for how long it has run, and how long it has left at this pace.
local function progress(run, lines)
  local facts, series = run.facts[0] or {}, run.series.seconds
  if not series then
    lines[#lines + 1] = "the run has not ended its first step"
    return
  end
  local n = #series.steps
  local step, planned = series.steps[n], tonumber(facts["run/steps"]) or 0
  -- Steps before this start of the job were made in other time.
  local begun, made = tonumber(facts["run/begin"]) or series.times[1], 0
  while made < n and series.times[n - made] >= begun do made = made + 1 end
  local spent = series.times[n] - begun
  local text = ("step %d"):format(step)
  if planned > 0 then
    text = ("step %d/%d  %s  %s gone"):format(step, planned, bar(step / planned, 24), clock(spent))
    if step < planned and made > 0 then
      text = text .. (", %s left"):format(clock(spent / made * (planned - step)))
    end
  end
  lines[#lines + 1] = text
end

local function lanes(run, lines)
  local sums = directory.sums(directory.trace(run))
  if sums.steps == 0 then return end
  lines[#lines + 1] = ""
  lines[#lines + 1] = ("%-11s share of the time that its compute lane works"):format "rank"
  local shown = 0
  for rank, sum in pairs(sums.ranks) do
    shown = shown + 1
    if shown <= 16 then
      lines[#lines + 1] = ("%-11d %s %5.1f %%  waits %.2f ms a step"):format(rank, bar(sum.compute / sum.window, 30),
        100 * sum.compute / sum.window, 1e3 * sum.wait / sums.steps)
    end
  end
  if shown > 16 then lines[#lines + 1] = ("and %d ranks more"):format(shown - 16) end
end

local function memory(run, lines)
  local found, most = {}, 1
  for name, bytes in pairs(run.facts[0] or {}) do
    local category = name:match "^plan/memory/(.*)"
    if category and tonumber(bytes) then found[#found + 1], most = { category, bytes }, math.max(most, bytes) end
  end
  if #found == 0 then return end
  table.sort(found, function(a, b) return a[2] > b[2] end)
  lines[#lines + 1] = ""
  lines[#lines + 1] = ("%-11s of rank 0's plan"):format "memory"
  for i = 1, math.min(6, #found) do
    lines[#lines + 1] = ("%-11s %s %s"):format(found[i][1], bar(found[i][2] / most, 30), short(found[i][2], true))
  end
end

local narrowest, widest = 11, 28 -- columns of names

-- A name in the first column; a longer one keeps its end.
local function column(name, columns)
  local length = utf8.len(name)
  if not length then return name end
  if length > columns then return "…" .. name:sub(utf8.offset(name, 1 - columns)) end
  return name .. (" "):rep(columns - length)
end

-- A line for each number of a run: its last value, and how it went.
local function numbers(run, lines)
  local names, columns = directory.recorded(run), narrowest
  for _, name in ipairs(names) do columns = math.min(widest, math.max(columns, utf8.len(name) or 0)) end
  local function add(name, series, text)
    lines[#lines + 1] = ("%s %-11s %s"):format(column(name, columns), directory.shown(series.values[#series.steps], text),
      spark(series, width - 15 - columns))
  end
  for _, row in ipairs(rows) do
    local series = run.series[row[1]]
    if series then add(row[2], series, row[3]) end
  end
  for _, name in ipairs(names) do add(name, run.series[name], function(v) return ("%.4g"):format(v) end) end
end

-- The script's other runs, which stay open.
local function further_of(job)
  local runs = {}
  job.opened = job.opened or {}
  for i, path in ipairs(directory.further(job)) do
    job.opened[path] = job.opened[path] or directory.open(path)
    runs[i] = job.opened[path]
  end
  return runs
end

-- A job and the script's other runs, by their names.
local function screen(job)
  local lines = { ("orrery top %s"):format(job.path), directory.ending(job) }
  local further = further_of(job)
  local only_named = further[1] and not job.series.seconds -- then the job itself has no steps
  if not only_named then progress(job, lines) end
  if next(job.series) then lines[#lines + 1] = "" end
  numbers(job, lines)
  for _, run in ipairs(further) do
    lines[#lines + 1] = ""
    lines[#lines + 1] = run.name
    if run.series.seconds then progress(run, lines) end
    numbers(run, lines)
    if only_named then lanes(run, lines) end
  end
  lanes(job, lines)
  memory(job, lines)
  -- Names come from files, which may be anybody's: none may command the terminal.
  for i, line in ipairs(lines) do lines[i] = line:gsub("[%c\127]", "?"):gsub("\194[\128-\159]", "?") end
  return lines
end

local function picture(lines)
  local out = { ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="monospace" font-size="13">')
    :format(width * 8 + 24, #lines * 18 + 20), '<rect width="100%" height="100%" fill="#161a21"/>' }
  for i, line in ipairs(lines) do
    out[#out + 1] = ('<text x="12" y="%d" fill="%s" xml:space="preserve">%s</text>'):format(8 + 18 * i,
      i == 1 and "#63a4e8" or "#e6e9ef", svg.escape(line))
  end
  return table.concat(out, "\n") .. "\n</svg>\n"
end

-- As many lines as the window has, if that can be told.
local function that_fit(lines)
  local pipe = io.popen "stty size 2>/dev/null </dev/tty"
  local rows_of_window = tonumber(pipe and pipe:read "a":match "^%d+") or math.huge
  if pipe then pipe:close() end
  if #lines < rows_of_window then return lines end
  local shown = table.move(lines, 1, math.max(1, rows_of_window - 2), 1, {})
  shown[#shown + 1] = ("and %d lines more: enlarge the window, or use --once"):format(#lines - #shown)
  return shown
end

-- Draws until the user interrupts, which ends the sleep with a signal.
local function follow(run)
  local changed, ending = true, nil
  repeat
    if changed or ending ~= directory.ending(run) then
      ending = directory.ending(run)
      io.write("\27[H\27[J", table.concat(that_fit(screen(run)), "\n"), "\n")
      io.flush()
    end
    local slept = os.execute "sleep 0.5"
    changed = directory.refresh(run)
    for _, each in ipairs(further_of(run)) do changed = directory.refresh(each) or changed end
  until not slept
end

return function(o)
  local run = directory.open(o.directory)
  if o.svg then files.write(o.svg, picture(screen(run)), "--svg") end
  if o.once then
    io.write(table.concat(screen(run), "\n"), "\n")
  elseif not o.svg then
    follow(run)
  end
end
