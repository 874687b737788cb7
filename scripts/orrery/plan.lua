-- SPDX-License-Identifier: Apache-2.0
--
-- What `orrery plan` and Run:plan print, from the planner's answers (core/plan/planner.h).
local _, orrery = ...
local engine = orrery.engine
local answer, fits = require "orrery.plan.answer", require "orrery.plan.fits"
local machines, next_changes = require "orrery.plan.machines", require "orrery.plan.next"
local report, words, json = require "orrery.plan.report", require "orrery.plan.words", require "orrery.watch.json"
local layouts, failures = require "orrery.plan.layouts", require "orrery.plan.failures"
local schedule, diff, fit = require "orrery.plan.schedule", require "orrery.plan.diff", require "orrery.plan.fit"

local M = {}

local most_lines = 100 -- of details that follow the answer unasked
local stacks = setmetatable({}, { __mode = "k" })

-- The stack of a run, changes of which its plan may try.
function M.remember(run, stack) stacks[run] = stack end

-- The answer to a question about a step of the run; `more`: the question's other fields.
function M.ask(run, batch, what, more)
  local question = { what = what, machine = machines.file(engine.plan_options().machine or "") }
  for name, value in pairs(more or {}) do question[name] = value end
  return engine.plan(run, batch, question)
end

local function write(option, path, text)
  local file = io.open(path, "w")
  if not file or not file:write(text) or not file:close() then
    orrery.fail(("%s %s: cannot be written; name a file in a directory that is there"):format(option, path))
  end
end

-- The number of microbatches that fits into `limit` bytes, or nil, and a text. Numbers that the engine refuses do not.
local function largest(run, batch, limit)
  return fit(M.ask(run, batch, "counts"), limit, function(count)
    local ok, peak = pcall(M.ask, run, batch, "peak", { microbatches = count })
    return ok and peak or { bytes = math.huge, refused = peak }
  end)
end

-- The microbatch that fits, for a plan that does not: lines for its answer.
local function smaller(run, batch, room)
  local _, said = largest(run, batch, math.floor(room.bytes - room.kept))
  return "  " .. said:gsub("\n$", ""):gsub("\n", "\n  ") .. "\n"
end

-- What to try next: planned where that is cheap or asked for. Large plans are sketched, the step itself too.
local function next_lines(run, batch, step, room)
  local stack, small = stacks[run], next_changes.is_small(step)
  if not stack or not small and not engine.plan_options().next then
    return { "--next plans changes of the stack, some of which take as long as this plan; --search tries layouts" }
  end
  return next_changes.lines(step, stack, function(changed, microbatches)
    local ok, found = pcall(M.ask, run, batch, small and "layout" or "sketch", {
      strategies = changed, microbatches = microbatches, model_flops = step.model_flops,
    })
    if not ok then return nil end
    local bytes = found.peak_bytes + step.kinds[1].outside_bytes
    return { seconds = found.step_seconds, bytes = bytes, fits = not room.bytes or bytes <= room.bytes - room.kept }
  end)
end

-- The details, if they are few or asked for, else how many there are.
local function details(step, o)
  local text = report.text(step)
  local _, lines = text:gsub("\n", "")
  if o.details or lines <= most_lines then return text end
  return ("  --details prints %d lines more: memory, exchanges and launches of each kind of ranks\n"):format(lines)
end

-- Why a plan is to be refused, where it must fit; "" if it is not.
local function refusal(step, room, o)
  if not o.must_fit then return "" end
  local excess = fits.too_much(step, room)
  if not excess then
    engine.fail_usage "--must-fit: what a rank has is not known; give --memory 80GiB, or a machine with memory_bytes"
  end
  if excess <= 0 then return "" end
  return ("the plan does not fit: a rank needs %s more than it may take"):format(words.size(excess))
end

-- A line with the hash of the step, and one for each kind of ranks with those of its parts.
local function digest(all)
  local lines = { ("plan digest %s"):format(all.digest) }
  for _, kind in ipairs(all.kinds) do
    lines[#lines + 1] = ("  launches %s  exchanges %s  memory %s  states %s  %s"):format(kind.launches, kind.exchanges,
      kind.memory, kind.states, words.ranks(kind.ranks))
    for i, round in ipairs(kind.periodic) do
      lines[#lines + 1] = ("  launches %s  exchanges %s  memory %s  states %s    program %d between steps"):format(
        round.launches, round.exchanges, round.memory, round.states, i)
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

-- What failures of hosts cost, if the command line says how often there are some.
local function goodput(run, batch, step, o)
  if o.mtbf == 0 and o.job_mtbf == 0 then return nil end
  return failures.of(step, M.ask(run, batch, "facts"), o)
end

-- The plan's JSON, with the goodput as its last field, and why the plan is refused, or "".
local function step_json(run, batch, o, microbatches)
  local text = M.ask(run, batch, "json", { microbatches = microbatches })
  if not o.must_fit and o.mtbf == 0 and o.job_mtbf == 0 then return text, "" end
  local step = json.decode(text)
  local cost = goodput(run, batch, step, o)
  if cost then text = ('%s,\n "goodput": %s\n}\n'):format(text:match "^(.*)\n}%s*$", json.encode(cost, " ")) end
  return text, refusal(step, fits.room(step, o.memory), o)
end

-- The text, and why the plan is refused (--must-fit), or "".
local function step_text(run, batch, o, microbatches)
  local step = M.ask(run, batch, "step", { microbatches = microbatches })
  local room = fits.room(step, o.memory or 0)
  if step.schedule and o.svg and o.svg ~= "" then write("--svg", o.svg, schedule.svg(step.schedule)) end
  local text = answer.text(step, room, next_lines(run, batch, step, room), o,
    goodput(run, batch, step, o))
  if room.bytes and fits.too_much(step, room) > 0 then text = text .. smaller(run, batch, room) end
  return text .. details(step, o), refusal(step, room, o)
end

function M.text(run, batch)
  local o = engine.plan_options()
  if o.diff then return diff.text(M.ask(run, batch, "diff", { rank = o.rank })), "" end
  if o.layouts then return layouts.text(M.ask(run, batch, "layouts", { rank = o.rank })), "" end
  if o.digest then return digest(M.ask(run, batch, "digest")), "" end
  if o.ops and o.ops ~= "" then
    write("--ops", o.ops, M.ask(run, batch, "ops"))
    return "", ""
  end
  local microbatches, said = 0, ""
  if o.fit and o.fit > 0 then
    microbatches, said = largest(run, batch, o.fit)
    if not microbatches then orrery.fail(said) end
  end
  if o.json then return step_json(run, batch, o, microbatches) end
  local text, why = step_text(run, batch, o, microbatches)
  return said .. text, why
end

return M
