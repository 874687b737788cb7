-- SPDX-License-Identifier: Apache-2.0
--
-- The details of a planned step: a pipeline's schedule, and for each kind of ranks memory by category, every collective
-- with its bytes and cause, what is launched, and where the time goes. `step` is the object that docs/plan.md
-- describes.
local words = require "orrery.plan.words"
local memory, traffic = require "orrery.plan.memory", require "orrery.plan.traffic"
local schedule = require "orrery.plan.schedule"

local M = {}

local function launches(all)
  local lines, sum = {}, { launches = 0, flops = 0, bytes = 0 }
  local function line(one, name)
    return ("  %8d %12.4g %10.4g  %s\n"):format(one.launches, one.flops * 1e-9, one.bytes * 1e-9, name)
  end
  for i, one in ipairs(all) do
    lines[i] = line(one, ("%-22s %s (%d)"):format(one.kind, one.kernels, one.score))
    for what, n in pairs(sum) do sum[what] = n + one[what] end
  end
  return "  launches        GFLOP         GB  a step\n" .. line(sum, "in all") .. table.concat(lines)
end

local function periodic(all)
  local parts = {}
  for i, one in ipairs(all) do
    local what = one.every == 1 and "more after each step" or ("more after every %d steps"):format(one.every)
    if one.rounds > 1 then what = ("%s, round %d of %d"):format(what, one.round, one.rounds) end
    parts[i] = ("  program of strategy.%s, memory %s\n"):format(one.strategy, words.size(one.memory_bytes))
      .. traffic.text(one.traffic, what)
  end
  return table.concat(parts)
end

local computes = { products = true, arithmetic = true, memory = true, launches = true }

-- How ranks spend the step.
local function spent(kind, step)
  local function share(seconds) return 100 * math.max(seconds, 0) / step.step_seconds end
  local text = ("  time    %.1f %% compute, %.1f %% exposed communication, %.1f %% idle\n"):format(
    share(kind.compute_seconds), share(kind.exposed_seconds), share(kind.idle_seconds))
  local waits = {}
  for _, part in ipairs(kind.time) do
    if not computes[part.what] and part.share >= 5e-4 then
      waits[#waits + 1] = ("%.1f %% %s%s"):format(100 * part.share, part.what, part.axis and " on " .. part.axis or "")
    end
  end
  return #waits > 0 and text .. "  waits   " .. table.concat(waits, ", ") .. "\n" or text
end

local function kind_text(kind, step)
  return words.ranks(kind.ranks) .. "\n" .. memory.text(kind) .. memory.ledger(kind.ledger)
    .. traffic.text(kind.traffic, "a step") .. launches(kind.launches) .. periodic(kind.periodic) .. spent(kind, step)
end

function M.text(step)
  local parts = { step.schedule and schedule.text(step.schedule) or "" }
  for _, kind in ipairs(step.kinds) do parts[#parts + 1] = kind_text(kind, step) end
  return table.concat(parts)
end

return M
