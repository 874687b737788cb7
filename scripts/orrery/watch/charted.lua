-- SPDX-License-Identifier: Apache-2.0
--
-- The data of a report's charts, as JSON that its page holds: every number that the runs have recorded.
--   {"runs": [{"name", "path", "state", "samples": [[step, samples], ...] or null}],
--    "charts": [{"tag", "title", "bytes", "lines": [{"run", "steps", "times", "values", "means"}]}]}
-- A run is a position, from 0. Times are seconds since the run began. A value that is not finite is null. A line of more
-- points than are wanted has of each of as many equal parts the least, the greatest and the first value that is not
-- finite; `means` are then {steps, times, values} of the parts, for smoothing.
local directory = require "orrery.watch.directory"
local json = require "orrery.watch.json"

local most_points, least_points, most_on_page = 2000, 100, 1000000

local titles = { loss = "Loss", tokens_per_second = "Tokens per second", samples_per_second = "Samples per second",
  grad_norm = "Norm of all gradients", learning_rate = "Learning rate", mfu = "Share of the machine's own best product (MFU)",
  seconds = "Seconds of a step", data_seconds = "Seconds of a step that wait for rows of the batch",
  checkpoint_seconds = "Seconds of a step that wait for a checkpoint", resident_bytes = "Memory of rank 0's process",
  arena_bytes = "Memory for a step's tensors", bytes_sent = "Sent by rank 0 in a step" }

-- As many digits as a number of single precision has; whole numbers have all of theirs.
local function number(value)
  if not directory.finite(value) then return "null" end
  if value == math.floor(value) and math.abs(value) < 2 ^ 53 then return ("%.0f"):format(value) end
  return ("%.9g"):format(value)
end

local function list(values)
  local out = {}
  for i = 1, #values do out[i] = number(values[i]) end
  return "[" .. table.concat(out, ",") .. "]"
end

-- Names may hold what would end the element that the data stand in.
local function text(value) return (json.encode(value, ""):gsub("<", "\\u003c")) end

-- Positions of the points of values[first .. last] that stand for all, in order, and the mean of the finite ones.
local function part(values, first, last)
  local least, most, bad, sum, count
  for i = first, last do
    local v = values[i]
    if not directory.finite(v) then
      bad = bad or i
    else
      least = (least and values[least] <= v) and least or i
      most = (most and values[most] >= v) and most or i
      sum, count = (sum or 0) + v, (count or 0) + 1
    end
  end
  local taken = {}
  for _, i in pairs { least, most ~= least and most or nil, bad } do taken[#taken + 1] = i end
  table.sort(taken)
  return taken, sum and sum / count or 0 / 0
end

local function picked(series, begin, positions)
  local steps, times, values = {}, {}, {}
  for i, at in ipairs(positions) do
    steps[i], times[i], values[i] = series.steps[at], series.times[at] - begin, series.values[at]
  end
  return steps, times, values
end

local function fields(steps, times, values)
  return ('"steps":%s,"times":%s,"values":%s'):format(list(steps), list(times), list(values))
end

-- The first and the last value are always there.
local function line(at, series, begin, most)
  local n, positions, middles, means = #series.steps, {}, {}, {}
  if n <= most then
    for i = 1, n do positions[i] = i end
    return ('{"run":%d,%s}'):format(at, fields(picked(series, begin, positions)))
  end
  local parts = most // 3
  for k = 1, parts do
    local first, last = n * (k - 1) // parts + 1, n * k // parts
    local taken, mean = part(series.values, first, last)
    if k == 1 and taken[1] ~= 1 then table.insert(taken, 1, 1) end
    if k == parts and taken[#taken] ~= n then taken[#taken + 1] = n end
    table.move(taken, 1, #taken, #positions + 1, positions)
    middles[k], means[k] = (first + last) // 2, mean
  end
  local steps, times = picked(series, begin, middles)
  return ('{"run":%d,%s,"means":{%s}}'):format(at, fields(picked(series, begin, positions)), fields(steps, times, means))
end

-- When it began: its first start, of which a later one has replaced what it told.
local function begin_of(run)
  local begin = tonumber((run.facts[0] or {})["run/begin"]) or math.huge
  for _, series in pairs(run.series) do begin = math.min(begin, series.times[1] or begin) end
  return begin < math.huge and begin or 0
end

-- How many samples had been taken up to a step, as corners of a line; nil if the run does not tell.
local function samples(run)
  local rate, seconds = run.series.samples_per_second, run.series.seconds
  if not rate or not seconds then return nil end
  local of_step, corners, step, sum, slope = {}, { "[0,0]" }, 0, 0, nil
  for i, at in ipairs(seconds.steps) do of_step[at] = seconds.values[i] end
  for i, at in ipairs(rate.steps) do
    local size = rate.values[i] * (of_step[at] or 0 / 0)
    if directory.finite(size) then
      size = math.floor(size + 0.5)
      if slope and size ~= slope then corners[#corners + 1] = ("[%d,%.0f]"):format(step, sum) end
      step, sum, slope = at, sum + (at - step) * size, size
    end
  end
  corners[#corners + 1] = ("[%d,%.0f]"):format(step, sum)
  return "[" .. table.concat(corners, ",") .. "]"
end

-- The names of all numbers of the runs: those that every run tells, then those that the scripts have recorded.
local function names_of(runs)
  local found, own, recorded = {}, {}, {}
  for _, run in ipairs(runs) do
    for name in pairs(run.series) do found[name] = true end
  end
  for _, name in ipairs(directory.own) do
    if found[name] then own[#own + 1], found[name] = name, nil end
  end
  for name in pairs(found) do recorded[#recorded + 1] = name end
  table.sort(recorded)
  return table.move(recorded, 1, #recorded, #own + 1, own)
end

return function(runs)
  local described, charts, begins, number_of_lines = {}, {}, {}, 0
  for i, run in ipairs(runs) do
    begins[i] = begin_of(run)
    described[i] = ('{"name":%s,"path":%s,"state":%s,"samples":%s}'):format(text(run.name), text(run.path),
      text(directory.ending(run)), samples(run) or "null")
    for _ in pairs(run.series) do number_of_lines = number_of_lines + 1 end
  end
  local most = math.max(least_points, math.min(most_points, most_on_page // math.max(1, number_of_lines)))
  for _, name in ipairs(names_of(runs)) do
    local lines = {}
    for i, run in ipairs(runs) do
      if run.series[name] then lines[#lines + 1] = line(i - 1, run.series[name], begins[i], most) end
    end
    charts[#charts + 1] = ('{"tag":%s,"title":%s,"bytes":%s,"lines":[%s]}'):format(text(name), text(titles[name] or name),
      name:find "bytes" and "true" or "false", table.concat(lines, ",\n"))
  end
  return ('{"runs":[%s],\n"charts":[%s]}'):format(table.concat(described, ",\n"), table.concat(charts, ",\n"))
end
