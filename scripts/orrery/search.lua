-- SPDX-License-Identifier: Apache-2.0
--
-- The search for a layout: `orrery plan --search` prints the best, strategy.auto takes the first.
local _, orrery = ...
local engine = orrery.engine
local layouts, bounds = require "orrery.search.layouts", require "orrery.search.bounds"
local report, words, ask = require "orrery.search.report", require "orrery.plan.words", require "orrery.plan".ask

local M = {}

local function by_time(a, b)
  if a.plan.seconds ~= b.plan.seconds then return a.plan.seconds < b.plan.seconds end
  return a.layout.number < b.layout.number
end

-- Says on stderr how far a search is, if it takes longer than some seconds.
local function progress()
  local begin, said = orrery.time(), orrery.time()
  return function(planned, waiting, best, o)
    local now = orrery.time()
    if now - said < 3 then return end
    said = now
    if o.tries > 0 then waiting = math.min(waiting, o.tries - planned) end
    local left = (now - begin) / math.max(planned, 1) * waiting
    if o.seconds > 0 then left = math.max(math.min(left, begin + o.seconds - now), 0) end
    io.stderr:write(("search: %d planned, best %s, about %.0f s left\n"):format(planned,
      best and words.duration(best.plan.seconds) or "none", left))
  end
end

-- Removes and returns the layout that seems best; those that do not seem to fit come last.
local function take_next(waiting, learn, limit)
  local least, at = math.huge, 1
  for i, l in ipairs(waiting) do
    local bytes = learn.memory:apply(l, l.guess_bytes)
    local score = learn.time:apply(l, l.guess_seconds) * learn.refusals:penalty(l)
      * (bytes > limit and 100 * bytes / limit or 1)
    if score < least then least, at = score, i end
  end
  return table.remove(waiting, at)
end

local function note_refusal(found, why)
  found.refused = found.refused + 1
  why = why:match "[^\n]*":gsub("^[%w_/.-]+:%d+: ", ""):gsub(" %b()", ""):gsub("%d+", "N")
  found.reasons[why] = (found.reasons[why] or 0) + 1
end

-- Notes the bounds and guesses of all layouts, and returns those that may fit.
local function that_may_fit(all, found, facts, template)
  local waiting = {}
  for number, l in ipairs(all) do
    l.number, l.bound = number, bounds.seconds(l, facts)
    l.guess_seconds, l.guess_bytes = bounds.guess_seconds(l, facts), bounds.guess_bytes(l, facts, template)
    if bounds.bytes(l, facts, template) > found.limit then
      found.cannot_fit = found.cannot_fit + 1
    else
      waiting[#waiting + 1] = l
    end
  end
  return waiting
end

-- Notes a plan of a layout, or why there is none, and lets the guesses learn from it.
local function note(found, l, plan, why, learn)
  learn.refusals:note(l, not plan)
  if not plan then return note_refusal(found, why) end
  found.planned = found.planned + 1
  learn.time:learn(l, l.guess_seconds, plan.seconds)
  learn.memory:learn(l, l.guess_bytes, plan.bytes)
  if plan.bytes > found.limit then
    found.too_large = found.too_large + 1
  else
    table.insert(found.best, { layout = l, plan = plan })
    table.sort(found.best, by_time)
  end
end

-- Plans layouts by try(layout), `o.tries` of them (0: all) or for `o.seconds` (0: any), and sorts those that fit by
-- time. A layout is left out for good only where a bound proves that it cannot fit or cannot be among the ten.
local function search(all, template, facts, o, try)
  local found = {
    all = #all, ranks = facts.ranks, best = {}, reasons = {}, limit = o.memory > 0 and o.memory or math.huge,
    planned = 0, refused = 0, cannot_fit = 0, too_large = 0, cannot_win = 0,
  }
  local waiting = that_may_fit(all, found, facts, template)
  local learn = { time = bounds.correction(), memory = bounds.correction(), refusals = bounds.refusals() }
  local say, begin = progress(), orrery.time()
  local function may_go_on()
    if o.tries > 0 and found.planned >= o.tries then return false end
    return o.seconds == 0 or orrery.time() - begin < o.seconds or #found.best == 0
  end
  while #waiting > 0 and may_go_on() do
    local l, tenth = take_next(waiting, learn, found.limit), found.best[10]
    if tenth and l.bound > tenth.plan.seconds then
      found.cannot_win = found.cannot_win + 1
    else
      local plan, why = try(l)
      note(found, l, plan, why, learn)
    end
    say(found.planned, #waiting, found.best[1], o)
  end
  found.left = #waiting
  return found
end

-- The plan of a step in a layout: seconds, bytes of the rank that needs most, mfu, and time by what it goes to. Or nil
-- and why the engine refuses it.
local function try(run, batch, what, layout, model_flops)
  local ok, step = pcall(ask, run, batch, what, {
    strategies = layouts.strategies(layout), microbatches = layout.microbatches, model_flops = model_flops,
  })
  if not ok then return nil, step end
  local time = {}
  for _, part in ipairs(step.time) do time[part.axis and part.what .. " on " .. part.axis or part.what] = part.share end
  return { seconds = step.step_seconds, bytes = step.peak_bytes, mfu = step.mfu, time = time }
end

-- `template`: of the stack; o: memory (0: what the machine file says, if anything), tries, seconds, microbatches (0:
-- any).
local function find(run, batch, template, o)
  local facts = ask(run, batch, "facts")
  if o.memory == 0 then o.memory = math.floor(facts.memory_bytes) end
  local all = layouts.all(facts.ranks, facts.samples, template, o.microbatches)
  local what = (o.seconds > 0 or o.tries > 0) and "sketch" or "layout"
  return search(all, template, facts, o, function(l) return try(run, batch, what, l, facts.product_flops) end)
end

local function refuse_nothing(found, o)
  if #found.best > 0 then return end
  orrery.fail(("search: no layout of %d ranks fits%s\n%s"):format(found.ranks,
    o.memory > 0 and (" into %d bytes a rank"):format(o.memory) or "", report.text(found)))
end

-- Chooses the stack of strategy.auto: rank 0 searches, and all ranks take its choice.
local function choose(run, batch, template, o)
  local planning = engine.plan_only()
  local number
  if planning or orrery.world.rank == 0 then
    local ok, found = pcall(find, run, batch, template, o)
    if ok then ok, found = pcall(function() refuse_nothing(found, o) return found.best[1].layout.number end) end
    number = ok and found or { failed = tostring(found) }
  end
  if not planning then number = orrery.world:broadcast_object(number) end
  if type(number) == "table" then error(number.failed, 0) end
  return number
end

local function take(run, batch, template, o)
  local number = choose(run, batch, template, o)
  local facts = ask(run, batch, "facts")
  local l = layouts.all(facts.ranks, facts.samples, template, o.microbatches)[number]
  orrery.log("auto: %s", report.title(l))
  engine.use_layout(run, { strategies = layouts.strategies(l), microbatches = l.microbatches })
end

local function show(run, batch, template, o)
  local found = find(run, batch, template, o)
  refuse_nothing(found, o)
  print(report.text(found))
  return true
end

-- Searches when the first batch of the run is known: for strategy.auto, or to print. strategy.auto keeps the
-- microbatches that the script gives; the command ignores them.
function M.watch(run, stack, microbatches)
  local auto
  for _, entry in ipairs(stack) do auto = auto or entry.auto end
  local asked = engine.plan_options()
  if not auto and not asked.search then return end
  local template, o = layouts.template(stack, auto), {}
  if asked.search then
    local memory = asked.memory > 0 and asked.memory or auto and auto.memory or 0
    o = { memory = memory, tries = 0, seconds = asked.seconds, microbatches = 0 }
  else
    o = { memory = auto.memory, tries = auto.tries, seconds = 0, microbatches = microbatches }
  end
  engine.before_first(run, function(batch) return (asked.search and show or take)(run, batch, template, o) end)
end

return M
