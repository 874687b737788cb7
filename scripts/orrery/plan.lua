-- SPDX-License-Identifier: Apache-2.0
--
-- What `orrery plan` and Run:plan print, from the planner's answers (core/plan/planner.h).
local _, orrery = ...
local engine = orrery.engine
local report, memory = require "orrery.plan.report", require "orrery.plan.memory"
local words = require "orrery.plan.words"
local layouts = require "orrery.plan.layouts"
local schedule, diff, fit = require "orrery.plan.schedule", require "orrery.plan.diff", require "orrery.plan.fit"

local M = {}

-- The answer to a question about a step of the run; `more`: the question's other fields.
function M.ask(run, batch, what, more)
  local question = { what = what, machine = engine.plan_options().machine or "" }
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

-- What does not fit into the machine's memory, and what --fit finds for it, or why nothing fits.
local function excess(run, batch, step)
  local most, lines = step.machine_memory_bytes, {}
  if not most then return "" end
  for i, kind in ipairs(step.kinds) do lines[i] = memory.excess(kind, most) end
  local text = table.concat(lines)
  if text == "" then return "" end
  local found, said = largest(run, batch, math.floor(most))
  return text .. said .. (found and "" or "\n")
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

function M.text(run, batch)
  local o = engine.plan_options()
  if o.diff then return diff.text(M.ask(run, batch, "diff", { rank = o.rank })) end
  if o.layouts then return layouts.text(M.ask(run, batch, "layouts", { rank = o.rank })) end
  if o.digest then return digest(M.ask(run, batch, "digest")) end
  if o.ops and o.ops ~= "" then
    write("--ops", o.ops, M.ask(run, batch, "ops"))
    return ""
  end
  local microbatches, said = 0, ""
  if o.fit and o.fit > 0 then
    microbatches, said = largest(run, batch, o.fit)
    if not microbatches then orrery.fail(said) end
  end
  if o.json then return M.ask(run, batch, "json", { microbatches = microbatches }) end
  local step = M.ask(run, batch, "step", { microbatches = microbatches })
  if step.schedule and o.svg and o.svg ~= "" then write("--svg", o.svg, schedule.svg(step.schedule)) end
  return said .. excess(run, batch, step) .. report.text(step)
end

return M
