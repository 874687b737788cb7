-- SPDX-License-Identifier: Apache-2.0
--
-- What a run has written to its directory: metrics.jsonl, records.jsonl, facts.RANK.jsonl and trace.json. Runs with a
-- name, the second run of a script and what its functions record have directories in it: critic, run-2, func-1.
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

local block, longest = 1 << 20, 1 << 20 -- bytes that are read at once, and of a line of numbers
local longest_record = 1 << 28

-- Calls take(line, number) for each whole line behind byte `from`; a line that is being written, without its end, is
-- left for later. Returns where the last one ends, and nil if there is no such file. Files may be larger than memory.
local function each_line(path, from, number, take, limit)
  local file <close> = io.open(path, "rb")
  if not file then return nil end
  file:seek("set", from)
  local rest = ""
  for text in function() return file:read(block) end do
    text = rest .. text
    local last, stop = 0, text:find("\n", 1, true)
    while stop do
      number = number + 1
      take(text:sub(last + 1, stop - 1), number)
      last, stop = stop, text:find("\n", stop + 1, true)
    end
    from, rest = from + last, text:sub(last + 1)
    if #rest > (limit or longest) then
      orrery.engine.fail_usage(("%s: line %d is longer than any that a run writes"):format(path, number + 1))
    end
  end
  return from, number
end

-- The object of a line. A number that was not finite, which the files have as null, is NaN.
local function object_of(path, line, number)
  local ok, value = pcall(json.decode, line, 0 / 0)
  if not ok then orrery.engine.fail_usage(("%s: line %d: %s"):format(path, number, value)) end
  return value
end

local function foreign(path, number, expected)
  orrery.engine.fail_usage(("%s: line %d is not of a run: %s is expected"):format(path, number, expected))
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

local function take_number(run, tag, step, time, value)
  run.series[tag] = run.series[tag] or { steps = {}, values = {}, times = {} }
  add(run.series[tag], step, time, value)
end

-- A line as runs write it, without escapes and null: this is several times as fast. Returns whether it is one.
local function take_plain(run, line)
  local step, time, at = line:match '^{"step":(%d+),"time":([%d.e+-]+)()'
  step, time = math.tointeger(step), tonumber(time)
  if not step or not time then return false end
  local tags, values = {}, {}
  while line:byte(at) == 44 do
    local tag, value, after = line:match('^,"([^"\\]+)":([%d.e+-]+)()', at)
    value = tonumber(value)
    if not value then return false end
    tags[#tags + 1], values[#values + 1], at = tag, value, after
  end
  if line:sub(at) ~= "}" then return false end
  for i, tag in ipairs(tags) do take_number(run, tag, step, time, values[i]) end
  return true
end

local function take_metrics(run, path, line, number)
  if take_plain(run, line) then return end
  local object = object_of(path, line, number)
  local right = type(object) == "table" and math.type(object.step) == "integer" and type(object.time) == "number"
  for _, each in pairs(right and object or {}) do right = right and type(each) == "number" end
  if not right then foreign(path, number, '{"step":1,"time":1.5,"NAME":NUMBER}') end
  for name, each in pairs(object) do
    if name ~= "step" and name ~= "time" then take_number(run, name, object.step, object.time, each) end
  end
end

local function facts_of(path)
  local found = {}
  local there = each_line(path, 0, 0, function(line, number)
    local object = object_of(path, line, number)
    if type(object) ~= "table" or type(object.name) ~= "string" or type(object.value) == "table" then
      foreign(path, number, '{"name":"NAME","value":VALUE}')
    end
    found[object.name] = object.value
  end)
  return there and found
end

-- Reads what has been added since the last call; returns whether there was anything.
function M.refresh(run)
  local path, before = run.path .. "/metrics.jsonl", run.read
  local read, number = each_line(path, run.read, run.lines, function(line, at) take_metrics(run, path, line, at) end)
  if not read then
    orrery.engine.fail_usage(("%s: there is no metrics.jsonl; name a directory that `orrery run --dir` wrote")
      :format(run.path))
  end
  run.read, run.lines = read, number
  run.facts = {}
  local rank = 0
  while rank == 0 or rank < (tonumber(run.facts[0]["run/ranks"]) or 1) do
    local facts = facts_of(("%s/facts.%d.jsonl"):format(run.path, rank))
    if not facts then break end
    run.facts[rank], rank = facts, rank + 1
  end
  return read > before
end

-- The texts, images and histograms that the script has recorded, by name the one of the last step: {name =, step =,
-- text = or image = or histogram = {least =, most =, counts = {...}}}, in the order of names.
function M.records(run)
  local path, found, list = run.path .. "/records.jsonl", {}, {}
  each_line(path, 0, 0, function(line, number)
    local one = object_of(path, line, number)
    if type(one) ~= "table" or type(one.name) ~= "string" or math.type(one.step) ~= "integer" then
      foreign(path, number, '{"step":1,"time":1.5,"name":"NAME","text":"TEXT"}')
    end
    found[one.name] = one
  end, longest_record)
  for _, one in pairs(found) do list[#list + 1] = one end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

-- The numbers that every run tells, in the order in which they are shown.
M.own = { "loss", "tokens_per_second", "samples_per_second", "grad_norm", "learning_rate", "mfu", "seconds", "data_seconds",
  "checkpoint_seconds", "resident_bytes", "arena_bytes", "bytes_sent" }

local is_own = {}
for _, name in ipairs(M.own) do is_own[name] = true end

-- The names of the numbers that the script has recorded, beside those.
function M.recorded(run)
  local names = {}
  for name in pairs(run.series) do
    if not is_own[name] then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

-- Whether it is an event as runs write them: of the viewers' others, pages know nothing.
local function is_event(e)
  if type(e) ~= "table" or type(e.name) ~= "string" or type(e.args) ~= "table" then return false end
  local numbers = { e.pid, e.tid, e.ts }
  if e.ph == "X" then numbers[4], numbers[5] = e.dur, e.args.step end
  for i = 1, e.ph == "X" and 5 or 3 do
    if type(numbers[i]) ~= "number" then return false end
  end
  return e.ph == "X" or e.ph == "M"
end

-- The events of the trace, or of the newest that an earlier start of the job has written; an empty list if there is
-- none.
function M.trace(run)
  local text, number = lines_of(run.path .. "/trace.json"), 1
  while not text do
    local next_one = lines_of(("%s/trace-%d.json"):format(run.path, number + 1))
    if not next_one then text = lines_of(("%s/trace-%d.json"):format(run.path, number)) break end
    number = number + 1
  end
  if not text then return {} end
  local ok, value = pcall(json.decode, text)
  if not ok then orrery.engine.fail_usage(("%s/trace.json: %s"):format(run.path, value)) end
  local events = {}
  for _, e in ipairs(type(value) == "table" and type(value.traceEvents) == "table" and value.traceEvents or {}) do
    if is_event(e) then events[#events + 1] = e end
  end
  return events
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
  if run.job then return M.ending(run.job) end
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

-- The directories of the script's other runs and functions, and of its runs with names.
function M.further(run)
  local paths = {}
  for name in pairs(run.facts[0] or {}) do
    local inner = name:match "^further/([%w_-]+)$"
    if inner and orrery.engine.is_file(("%s/%s/metrics.jsonl"):format(run.path, inner)) then
      paths[#paths + 1] = run.path .. "/" .. inner
    end
  end
  table.sort(paths)
  return paths
end

-- Of a directory inside of a job's, `job` is that, which tells how it ended.
function M.open(path)
  path = path:gsub("(.)/+$", "%1")
  local run = { path = path, name = path:match "[^/]*$", series = {}, facts = {}, read = 0, lines = 0 }
  M.refresh(run)
  local outer, inner = path:match "^(.*)/([%w_-]+)$"
  local facts = outer and lines_of(outer .. "/facts.0.jsonl")
  if facts and facts:find(('"further/%s"'):format(inner), 1, true) then run.job = M.open(outer) end
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
