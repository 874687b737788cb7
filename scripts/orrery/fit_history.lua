-- SPDX-License-Identifier: Apache-2.0
--
-- The evaluations of a Run:fit, which of them was the best, and whether training goes on. A checkpoint keeps them as
-- lines of text in its `extra`; names of results hold no tab and no end of a line (core/edit/metric_name.h).
local _, orrery = ...
local M = {}
local methods = {}
methods.__index = methods

-- `best` names a result; it is the largest if `mode` is "max". patience = 0: there is no end of it.
function M.new(best, mode, patience)
  return setmetatable({ judged = best, mode = mode, patience = patience, entries = {}, waited = 0 }, methods)
end

local function number_in(text)
  return tonumber(text) or text:find "nan" and 0 / 0 or text:find "-" and -math.huge or math.huge
end

-- Fails unless these results, by name, have the one by which they are judged.
function methods.check(past, results)
  if results[past.judged] then return end
  local names = {}
  for name in pairs(results) do names[#names + 1] = name end
  orrery.fail(("fit: best is '%s', which no result has as a number%s; there are %s"):format(
    past.judged, orrery.did_you_mean(past.judged, names), table.concat(names, ", ")))
end

-- The number by which an entry is judged: the smaller the better.
function methods.cost(past, entry)
  past:check(entry.results)
  local value = entry.results[past.judged]
  return past.mode == "max" and -value or value
end

-- Returns whether the entry is the best so far. NaN never is.
local function append(past, entry)
  local cost = past:cost(entry)
  past.entries[#past.entries + 1] = entry
  local better = cost == cost and (not past.least or cost < past.least)
  if better then past.best, past.least = entry, cost end
  past.waited = better and 0 or past.waited + 1
  return better
end

-- The results that are numbers, by name.
function M.numbers_of(result)
  local numbers = {}
  for _, name in ipairs(result:names()) do
    local value = result:get(name)
    if type(value) == "number" then numbers[name] = value end
  end
  return numbers
end

-- Adds an evaluation, and returns its entry and whether it is the best so far.
function methods.add(past, step, epoch, result)
  local entry = { step = step, epoch = epoch, results = M.numbers_of(result) }
  return entry, append(past, entry)
end

function methods.stops(past) return past.patience > 0 and past.waited >= past.patience end

function methods.last_step(past)
  local last = past.entries[#past.entries]
  return last and last.step
end

-- What a checkpoint of this step keeps. `open`: the epoch may have ended there without what follows an epoch.
function methods.text(past, step, epoch, open)
  local lines = { ("fit\t%d\t%s\t%s"):format(step, epoch or "", open and "open" or "") }
  for _, entry in ipairs(past.entries) do
    lines[#lines + 1] = ("at\t%d\t%s"):format(entry.step, entry.epoch or "")
    for name, value in pairs(entry.results) do lines[#lines + 1] = ("%s\t%.17g"):format("=" .. name, value) end
  end
  return table.concat(lines, "\n")
end

local function whole(text) return text ~= "" and math.tointeger(tonumber(text)) or nil end

-- The entries, the step, the epoch and `open` of such a text; nil of another one.
local function parsed(text)
  local step, epoch, open = text:match "^fit\t(%d+)\t(%d*)\t(%l*)"
  if not step then return nil end
  local entries = {}
  for line in text:gmatch "[^\n]+" do
    local at, of = line:match "^at\t(%d+)\t(%d*)$"
    local name, value = line:match "^=([^\t]*)\t(.*)$"
    if at then
      entries[#entries + 1] = { step = whole(at), epoch = whole(of), results = {} }
    elseif name then
      entries[#entries].results[name] = number_in(value)
    end
  end
  return entries, whole(step), whole(epoch), open == "open"
end

-- Begins with the evaluations of a checkpoint; returns its epoch and `open`.
function methods.read(past, text)
  local entries, _, epoch, open = parsed(text)
  for _, entry in ipairs(entries or {}) do append(past, entry) end
  return epoch, open
end

-- The cost of the evaluation that belongs to the checkpoint with this text; nil: it has none.
function methods.cost_in(past, text)
  local entries, step = parsed(text)
  local last = entries and entries[#entries]
  if not last or last.step ~= step then return nil end
  local cost = past:cost(last)
  return cost == cost and cost or nil
end

return M
