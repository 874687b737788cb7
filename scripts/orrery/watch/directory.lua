-- SPDX-License-Identifier: Apache-2.0
--
-- What a run has written to its directory: metrics.jsonl, facts.RANK.jsonl and trace.json.
local _, orrery = ...
local json = require "orrery.watch.json"

local M = {}

local function lines_of(path, from)
  local file = io.open(path, "rb")
  if not file then return nil end
  file:seek("set", from or 0)
  local text = file:read "a"
  file:close()
  return text
end

-- The objects of whole lines; a line that is being written, without its end, is left for later. A number that was not
-- finite, which the files have as null, is NaN.
local function each_line(path, text, take)
  local number, last = 0, 0
  for line, after in text:gmatch "([^\n]*)\n()" do
    number, last = number + 1, after - 1
    local ok, value = pcall(json.decode, line, 0 / 0)
    if not ok then orrery.engine.fail_usage(("%s: line %d: %s"):format(path, number, value)) end
    take(value)
  end
  return last
end

-- A metric's values in order of steps. A run that continued from an earlier step writes steps again: the later ones
-- count.
local function add(series, step, time, value)
  local n = #series.steps
  while n > 0 and series.steps[n] >= step do
    series.steps[n], series.values[n], series.times[n] = nil, nil, nil
    n = n - 1
  end
  series.steps[n + 1], series.values[n + 1], series.times[n + 1] = step, value, time
end

local function take_metric(run, object)
  for tag, value in pairs(object) do
    if tag ~= "step" and tag ~= "time" then
      run.series[tag] = run.series[tag] or { steps = {}, values = {}, times = {} }
      add(run.series[tag], object.step, object.time, value)
    end
  end
end

-- Reads what has been added since the last call; returns whether there was anything.
function M.refresh(run)
  local path = run.path .. "/metrics.jsonl"
  local text = lines_of(path, run.read)
  if not text then
    orrery.engine.fail_usage(("%s: there is no metrics.jsonl; name a directory that `orrery run --dir` wrote")
      :format(run.path))
  end
  local taken = each_line(path, text, function(object) take_metric(run, object) end)
  run.read = run.read + taken
  run.facts = {}
  local rank = 0
  while true do
    local facts = lines_of(("%s/facts.%d.jsonl"):format(run.path, rank))
    if not facts or rank > 0 and rank >= (run.facts[0]["run/ranks"] or 1) then break end
    local found = {}
    each_line(run.path, facts, function(object) found[object.name] = object.value end)
    run.facts[rank], rank = found, rank + 1
  end
  return taken > 0
end

-- The events of the trace; an empty list if none has been written.
function M.trace(run)
  local text = lines_of(run.path .. "/trace.json")
  if not text then return {} end
  local ok, value = pcall(json.decode, text)
  if not ok then orrery.engine.fail_usage(("%s/trace.json: %s"):format(run.path, value)) end
  return value.traceEvents
end

-- "finished", "stopped and saved: ..." or "failed: ..." by the facts of a rank; nil if they do not say.
local function told(facts)
  local words = { finished = "finished", stopped = "stopped and saved", failed = "failed" }
  local status, reason = facts["run/status"], facts["run/error"]
  if not words[status] then return nil end
  return words[status] .. (reason and ": " .. tostring(reason) or "")
end

-- Whether the run goes on, or how it has ended. Rank 0 tells it, and for a rank 0 that was lost another rank. The
-- facts of another rank may be those of an earlier start, which ended before rank 0 began.
function M.ending(run)
  local first = run.facts[0] or {}
  if told(first) then return told(first) end
  local writer = orrery.engine.writer_of_run(run.path)
  if writer ~= "" then return "running, by " .. writer end
  for rank = 1, #run.facts do
    local facts = run.facts[rank]
    if told(facts) and (tonumber(facts["run/end"]) or 0) >= (tonumber(first["run/begin"]) or 0) then
      return ("%s (rank %d)"):format(told(facts), rank)
    end
  end
  if first["run/locked"] == 1 then return "lost without a word: it has not told how it ended, and no process of it is left" end
  return "not known: it has not told how it ended"
end

function M.open(path)
  local run = { path = path, name = path:gsub("/+$", ""):match "[^/]*$", series = {}, facts = {}, read = 0 }
  M.refresh(run)
  return run
end

function M.last(run, tag)
  local series = run.series[tag]
  return series and series.values[#series.steps]
end

-- Whether a value was recorded, and is a finite number.
function M.finite(value) return value ~= nil and value == value and math.abs(value) < math.huge end

-- The number by `text`; one that is not finite says so.
function M.shown(value, text) return M.finite(value) and text(value) or "not finite" end

-- "1.20k", "3.4M"; with binary = true in bytes, "1.2 MiB".
function M.short(value, binary)
  if type(value) ~= "number" then return tostring(value) end
  if not M.finite(value) then return "not finite" end
  local base, names = 1000, { "", "k", "M", "G", "T", "P" }
  if binary then base, names = 1024, { " B", " KiB", " MiB", " GiB", " TiB", " PiB" } end
  local i, size = 1, math.abs(value)
  while size >= base and i < #names do size, i = size / base, i + 1 end
  local text = size >= 100 and "%.0f" or size >= 10 and "%.1f" or "%.4g"
  return (value < 0 and "-" or "") .. text:format(size) .. names[i]
end

-- Sums of a trace's spans: ops and exchanges by name, each {name, calls, seconds, flops, bytes}, the slowest first, and
-- by rank the seconds of compute, waiting and window of the steps noted.
function M.sums(events)
  local ops, exchanges, ranks, steps = {}, {}, {}, {}
  local function count(table_of, e)
    local row = table_of[e.name] or { name = e.name, calls = 0, seconds = 0, flops = 0, bytes = 0 }
    table_of[e.name] = row
    row.calls, row.seconds = row.calls + 1, row.seconds + e.dur / 1e6
    row.flops, row.bytes = row.flops + (e.args.flops or 0), row.bytes + (e.args.bytes or 0)
  end
  for _, e in ipairs(events) do
    if e.ph == "X" then
      local rank = ranks[e.pid] or { compute = 0, wait = 0, window = 0, first = {}, last = {} }
      ranks[e.pid], steps[e.args.step] = rank, true
      if e.tid > 0 then
        if e.name ~= "batch" then count(exchanges, e) end
      else
        if e.name == "wait" then rank.wait = rank.wait + e.dur / 1e6
        else count(ops, e) rank.compute = rank.compute + e.dur / 1e6 end
        local step = e.args.step
        rank.first[step] = math.min(rank.first[step] or math.huge, e.ts)
        rank.last[step] = math.max(rank.last[step] or 0, e.ts + e.dur)
      end
    end
  end
  local number = 0
  for step in pairs(steps) do
    number = number + 1
    local first, last = math.huge, 0
    for _, rank in pairs(ranks) do
      first, last = math.min(first, rank.first[step] or first), math.max(last, rank.last[step] or last)
    end
    for _, rank in pairs(ranks) do rank.window = rank.window + math.max(0, last - first) / 1e6 end
  end
  local function sorted(rows)
    local list = {}
    for _, row in pairs(rows) do list[#list + 1] = row end
    table.sort(list, function(a, b) return a.seconds > b.seconds end)
    return list
  end
  return { ops = sorted(ops), exchanges = sorted(exchanges), ranks = ranks, steps = number }
end

return M
