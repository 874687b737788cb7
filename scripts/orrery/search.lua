-- SPDX-License-Identifier: Apache-2.0
--
-- The search for a layout: `orrery plan --search` prints the best, strategy.auto takes the first.
local _, orrery = ...
local engine = orrery.engine
local layouts, hunt = require "orrery.search.layouts", require "orrery.search.hunt"
local report, ask = require "orrery.search.report", require "orrery.plan".ask

local M = {}

-- The plan of a step: seconds, bytes of the rank that needs most, mfu, and time by what it goes to; of one whose first
-- rank does not fit that rank's bytes.
local function plan_of(step)
  if not step.time then return { bytes = step.peak_bytes } end
  local time = {}
  for _, part in ipairs(step.time) do time[part.axis and part.what .. " on " .. part.axis or part.what] = part.share end
  return { seconds = step.step_seconds, bytes = step.peak_bytes, mfu = step.mfu, time = time }
end

-- Answers about layouts of a run, each or nil and why the engine refuses it.
local function asker(run, batch, template, facts)
  local function answer(what, l, more)
    more.strategies = layouts.strategies(l, template)
    more.microbatches = l.microbatches
    local ok, found = pcall(ask, run, batch, what, more)
    if not ok then return nil, found end
    return found
  end
  local asked = {}
  function asked.plan(l, what, room)
    local step, why = answer(what, l, { model_flops = facts.product_flops, room = room ~= math.huge and room or nil })
    if not step then return nil, why end
    return plan_of(step)
  end
  function asked.probe(l) return answer("probe", l, { world = l.ranks * template.fixed }) end
  return asked
end

-- `template`: of the stack; o: memory (0: what the machine file says, if anything), tries, seconds, microbatches (0:
-- any).
local function find(run, batch, template, o)
  local facts = ask(run, batch, "facts")
  if o.memory == 0 then o.memory = math.floor(facts.memory_bytes) end
  if o.memory > 0 then o.room = o.memory - (facts.figures.reserved_bytes or 0) end
  return hunt(facts, template, o, asker(run, batch, template, facts))
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
  local chosen
  layouts.each(ask(run, batch, "facts"), template, o.microbatches, function(l)
    if l.number == number then chosen = l end
  end)
  orrery.log("auto: %s", report.title(chosen))
  engine.use_layout(run, { strategies = layouts.strategies(chosen, template), microbatches = chosen.microbatches })
end

local function show(run, batch, template, o)
  local found = find(run, batch, template, o)
  refuse_nothing(found, o)
  print(report.text(found, template, engine.plan_options().details))
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
