-- SPDX-License-Identifier: Apache-2.0
--
-- The first lines of a planned step: whether it fits, how long it takes, what binds it and why, what to try next.
-- `step` is the object that docs/plan.md describes.
local alike, fits, words = require "orrery.plan.alike", require "orrery.plan.fits", require "orrery.plan.words"
local machines, why, cost = require "orrery.plan.machines", require "orrery.plan.why", require "orrery.plan.cost"
local failures = require "orrery.plan.failures"

local M = {}

local most_remarks = 4

function M.head(step)
  local text = ("plan: %s, %s of %s"):format(words.count(step.ranks, "rank"),
    step.microbatches == 1 and "1 microbatch" or ("%d microbatches"):format(step.microbatches),
    words.count(-(-step.samples // step.microbatches), "sample"))
  for _, axis in ipairs(step.mesh) do text = ("%s, axis %s %d"):format(text, axis.axis, axis.size) end
  return text .. "\n"
end

local function named(name, text) return ("  %-7s %s\n"):format(name, text) end

-- The time of a step as a range, where the machine's file says how far steps were from their plans, on what it knows.
local function range(step)
  local error = step.machine_says and step.machine_says.figures.time_error
  if not error then return "" end
  local text = "%s to %s: the machine's file has an error of %.0f %%; docs/plan.md says on which steps"
  return named("range", text:format(words.duration(step.step_seconds / (1 + error)),
    words.duration(step.step_seconds / (1 - error)), 100 * error))
end

-- What the step would take in other frameworks, if as many times as long as one step of theirs on such cards took.
local function elsewhere(step)
  local names, said = {}, {}
  local factors = step.machine_says and step.machine_says.frameworks or {}
  for name in pairs(factors) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    said[i] = ("%s %s (%.3g times)"):format(name, words.duration(factors[name] * step.step_seconds), factors[name])
  end
  return #said == 0 and "" or named("others", "by one step of theirs: " .. table.concat(said, ", "))
end

-- How long a step takes, the samples or tokens a second, how much of the machine it uses.
local function figures(step)
  local rate = ("%.4g samples"):format(step.samples / step.step_seconds)
  if step.tokens then rate = ("%s or %.4g tokens"):format(rate, step.tokens / step.step_seconds) end
  local machine = step.machine == "assumed" and "assumed (one core a rank; --machine NAME or FILE gives another)"
    or machines.title(step.machine)
  local took = words.duration(step.step_seconds)
  local text = named("step", ("%s: %s a second on the machine %s"):format(took, rate, machine)) .. range(step)
    .. elsewhere(step)
    .. named("mfu", ("%.3g %%: %.4g model FLOP/s, of the products that one process computes"):format(
      100 * step.mfu, step.model_flops_per_second))
  if not step.nominal_mfu then return text end
  return text .. named("nominal", ("%.3g %% mfu by convention: of the maker's peak, with masked keys of attention, "
    .. "and backward as twice forward"):format(100 * step.nominal_mfu))
end

local function order(step)
  if not step.order then return "" end
  return ("  order   axis '%s' crosses hosts: with strategy.%s last in the stack (and the size of the others given), "
    .. "the step takes %.4g s, not %.4g s\n"):format(step.order.axis, step.order.strategy, step.order.step_seconds,
    step.step_seconds)
end

local function remarks(step, all)
  local lines = {}
  for i, remark in ipairs(alike.counted(step.remarks)) do
    if i > most_remarks and not all then
      lines[i] = "  more remarks with --details\n"
      break
    end
    lines[i] = ("  %s%s\n"):format(remark.text, remark.times > 1 and (" (%d times)"):format(remark.times) or "")
  end
  return table.concat(lines)
end

-- Lines of which the first has the name.
local function block(name, lines)
  local all = {}
  for i, line in ipairs(lines) do all[i] = named(i == 1 and name or "", line) end
  return table.concat(all)
end

-- `room`: of fits.lua; `next_lines`: what to try; `o`: the options of the command line; `goodput`: of failures.lua, or
-- nil.
function M.text(step, room, next_lines, o, goodput)
  return M.head(step) .. fits.text(step, room, machines.names()) .. figures(step) .. named("binds", step.bottleneck)
    .. named("why", why.text(step)) .. order(step) .. block("next", next_lines) .. named("takes", cost.text(step, o))
    .. block("goodput", goodput and failures.lines(goodput, step, o) or {}) .. remarks(step, o.details)
end

return M
