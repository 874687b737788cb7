-- SPDX-License-Identifier: Apache-2.0
--
-- What to try next: changes of one option each, planned, and those of them that help most.
local _, orrery = ...
local words = require "orrery.plan.words"

local M = {}

local shown = 3
-- Launches of all kinds of ranks up to which a plan takes a fraction of a second, so that some more are no burden.
local small = 3000

function M.is_small(step)
  local launches = 0
  for _, kind in ipairs(step.kinds) do
    for _, one in ipairs(kind.launches) do launches = launches + one.launches end
  end
  return launches <= small
end

local function given(entry) return entry.given or entry.options end

local function at(stack, name)
  for i, entry in ipairs(stack) do
    if entry.name == name then return i, given(entry) end
  end
end

-- A strategy with its options and others in place of some.
local function made(name, options, more)
  local all = {}
  for key, value in pairs(options or {}) do all[key] = value end
  for key, value in pairs(more) do all[key] = value end
  return orrery.strategy[name](all)
end

local function replaced(stack, i, entry)
  local copy = table.move(stack, 1, #stack, 1, {})
  copy[i] = entry
  return copy
end

local function added(stack, place, entry)
  local copy = table.move(stack, 1, #stack, 1, {})
  table.insert(copy, place, entry)
  return copy
end

local function without(stack, i)
  local copy = table.move(stack, 1, #stack, 1, {})
  table.remove(copy, i)
  return copy
end

local function size_of(step, axis)
  for _, one in ipairs(step.mesh) do
    if one.axis == axis then return one.size end
  end
  return 1
end

-- Activations are kept, or computed again.
local function recompute(step, stack, add)
  local i, options = at(stack, "recompute")
  if not i then
    add("with recompute", added(stack, #stack + 1, made("recompute", nil, {})))
    add("with selective recompute", added(stack, #stack + 1, made("recompute", nil, { mode = "selective" })))
    return
  end
  add("without recompute", without(stack, i))
  if options.mode ~= "selective" then
    add("with selective recompute", replaced(stack, i, made("recompute", nil, { mode = "selective" })))
  end
end

local function microbatches(step, stack, add)
  if not at(stack, "pipeline") and not at(stack, "accumulate") then return end
  for _, count in ipairs { 2 * step.microbatches, step.microbatches // 2 } do
    if count > 0 and step.samples % count == 0 then add(("microbatches = %d"):format(count), stack, count) end
  end
end

local function zero(step, stack, add)
  local i, options = at(stack, "zero")
  if not i then
    local data = at(stack, "data")
    if data and size_of(step, "data") > 1 then
      add("with zero { stage = 1 }", added(stack, data + 1, made("zero", nil, { stage = 1 })))
    end
    return
  end
  local stage = options.stage or 1
  for _, other in ipairs { stage + 1, stage - 1 } do
    if other >= 1 and other <= 3 then
      add(("zero { stage = %d }"):format(other), replaced(stack, i, made("zero", options, { stage = other })))
    end
  end
end

local function pipeline(step, stack, add)
  local i, options = at(stack, "pipeline")
  if not i or type(options.schedule) == "function" or options.stages or size_of(step, "pipe") == 1 then return end
  for _, schedule in ipairs { "interleaved", "zb1" } do
    if options.schedule ~= schedule then
      local chunks = schedule == "interleaved" and 2 or 0
      add(("pipeline { schedule = \"%s\" }"):format(schedule),
        replaced(stack, i, made("pipeline", options, { schedule = schedule, chunks = chunks })))
    end
  end
end

local function tensor(step, stack, add)
  local i, options = at(stack, "tensor")
  if not i or size_of(step, "tensor") == 1 then return end
  local on = options.sequence and options.sequence ~= 0
  if not on then add("tensor { sequence = true }", replaced(stack, i, made("tensor", options, { sequence = true }))) end
end

-- All changes of the stack: { say, stack, microbatches (0: those of the script) }.
local function changes(step, stack)
  local all = {}
  local function add(say, changed, count) all[#all + 1] = { say = say, stack = changed, microbatches = count or 0 } end
  for _, of in ipairs { recompute, microbatches, zero, pipeline, tensor } do of(step, stack, add) end
  return all
end

local function line(base, change)
  local saved = base.seconds - change.seconds
  return ("%s: %s (%.3g %% %s), %s"):format(change.say, words.duration(change.seconds),
    100 * math.abs(saved) / base.seconds, saved >= 0 and "less" or "more", words.size(change.bytes))
end

-- Whether a change is worth telling: the plan does not fit and with it does, or it is faster, or, where nothing fits,
-- smaller.
local function helps(base, change)
  if change.fits ~= base.fits then return change.fits end
  local key = base.fits and "seconds" or "bytes"
  return change[key] < 0.995 * base[key]
end

-- Whether a is better than b: what fits first, then what is faster; of two that do not fit that with less memory.
local function better(a, b)
  if a.fits ~= b.fits then return a.fits end
  local key = a.fits and "seconds" or "bytes"
  if a[key] ~= b[key] then return a[key] < b[key] end
  return a.number < b.number
end

-- Of all changes those that the engine plans, best first.
local function tried(step, stack, plan)
  local found = {}
  for number, change in ipairs(changes(step, stack)) do
    local planned = plan(change.stack, change.microbatches)
    if planned then
      planned.say, planned.number = change.say, number
      found[#found + 1] = planned
    end
  end
  table.sort(found, better)
  return found
end

-- Lines of the best changes. `plan(stack, microbatches)`: { seconds, bytes, fits } of the step in another layout, or
-- nil if the engine refuses it; with nil that of the step itself.
function M.lines(step, stack, plan)
  if at(stack, "auto") then return { "strategy.auto has chosen among layouts; --search shows the ten best" } end
  local base, all, lines = plan(nil, step.microbatches), tried(step, stack, plan), {}
  for i = 1, math.min(shown, #all) do
    if helps(base, all[i]) then lines[#lines + 1] = line(base, all[i]) end
  end
  if #lines == 0 then
    lines[1] = ("none of %s of one option that were planned is faster and fits%s"):format(words.count(#all, "change"),
      #all > 0 and "; the nearest is " .. line(base, all[1]) or "; --search tries layouts")
  end
  return lines
end

return M
