-- SPDX-License-Identifier: Apache-2.0
--
-- What failures of hosts make of a plan: its goodput (goodput.lua), from the plan's checkpoint and the machine's file.
local _, orrery = ...
local cost, goodput, words = require "orrery.plan.cost", require "orrery.plan.goodput", require "orrery.plan.words"

local M = {}

local simulated, tried, seed = 20000, 4000, 1 -- failures of a simulation, and of those that only choose
local near = 0.01 -- of the goodput, that spare hosts need not buy

-- Where the machine's file has no such field. A rank's part of the storage that Llama 3 was trained with (2 TB/s for
-- 16,384); a copy to the host's memory as on the machine that plans assume; a deadline of 30 s and a minute to start.
local assumed = { storage_bandwidth = 1.25e8, ["host.bandwidth"] = 5e9, restart_seconds = 90, repair_hours = 24 }

-- Looks fields up, and keeps the names of those that it had to assume.
local function figures(step, facts)
  local file, lacking = step.machine_says and step.machine_says.figures or {}, {}
  return function(name)
    local value = file[name] or name == "host.bandwidth" and facts.host > 0 and facts.host
    if value or not assumed[name] then return value end
    lacking[#lacking + 1] = name
    return assumed[name]
  end, lacking
end

-- The speed of steps on fewer hosts: whole copies of the model share the microbatches, and the one that has most of
-- them is waited for. Also the fewest hosts that hold a copy.
local function speeds(step, hosts)
  local copies = 1
  for _, axis in ipairs(step.mesh) do
    if axis.strategy == "data" then copies = copies * axis.size end
  end
  local function rounds(count) return -(-step.microbatches // count) end
  return function(up) return rounds(copies) / rounds(math.max(1, up * copies // hosts)) end, -(-hosts // copies)
end

local function clone(job, changes)
  local other = {}
  for name, value in pairs(job) do other[name] = value end
  for name, value in pairs(changes) do other[name] = value end
  return other
end

-- The fewest spare hosts with which hardly anything waits for a host, and the goodput with them.
local function spares(job, interval, wanted)
  local function with(count) return goodput.goodput(clone(job, { spares = count }), interval, tried, seed) end
  local low, high = 0, 1
  while high < job.hosts and with(high) < wanted do low, high = high, 2 * high end
  while high - low > 1 do
    local middle = (low + high) // 2
    if with(middle) < wanted then low = middle else high = middle end
  end
  return high, with(high)
end

-- What a lost host costs that is away for a while: { what, goodput, spares or fewest_hosts }.
local function ways(job, interval, step, wanted)
  local waits = goodput.goodput(job, interval, tried, seed)
  local all = { { what = "wait", goodput = waits } }
  local speed, least = speeds(step, job.hosts)
  if least < job.hosts then
    local share, spent = goodput.goodput(clone(job, { speed = speed, least = least }), interval, simulated, seed)
    all[2] = { what = "fewer", goodput = share, fewest_hosts = spent.fewest }
  end
  local count, share = spares(job, interval, wanted - near)
  all[#all + 1] = { what = "spares", goodput = share, spares = count }
  return all
end

-- The job of a plan as goodput.lua takes it, whose lost hosts are back at each restart, and what it was made of.
local function job_of(step, facts, o)
  local figure, lacking = figures(step, facts)
  local hosts = o.nodes > 0 and o.nodes or -(-step.ranks // facts.ranks_per_host)
  local bytes, rate, total = step.checkpoint_bytes, figure "storage_bandwidth", figure "storage_total" or math.huge
  local load = math.max(bytes / (rate * step.ranks / hosts), bytes * hosts / total)
  local job = {
    hosts = hosts, mtbf = 3600 * (o.mtbf > 0 and o.mtbf or o.job_mtbf * hosts),
    copy = bytes / step.ranks / figure "host.bandwidth", write = math.max(bytes / step.ranks / rate, bytes / total),
    restart = figure "restart_seconds" + load, repair = 0, spares = 0, least = hosts, speed = function() return 1 end,
  }
  return job, 3600 * figure "repair_hours", load, lacking
end

-- The object `goodput` that docs/plan.md describes. `facts`: the planner's; `o`: the options of the command line.
function M.of(step, facts, o)
  if step.checkpoint_bytes == 0 then
    orrery.engine.fail_usage "--mtbf: the run has no parameters and states, so that a checkpoint would be empty"
  end
  local job, repair, load, lacking = job_of(step, facts, o)
  local mtbf, every = job.mtbf / job.hosts, goodput.best(job, step.step_seconds, tried, seed)
  local share, spent = goodput.goodput(job, every * step.step_seconds, simulated, seed)
  return {
    goodput = share, saves = spent.saving / spent.wall, restarts = spent.restarting / spent.wall,
    again = spent.again / spent.wall, every = every, interval_seconds = every * step.step_seconds,
    young_seconds = goodput.young(job.copy, mtbf), daly_seconds = goodput.daly(job.copy, mtbf), hosts = job.hosts,
    host_mtbf_seconds = job.mtbf, mtbf_seconds = mtbf, checkpoint_bytes = step.checkpoint_bytes,
    copy_seconds = job.copy, write_seconds = job.write, load_seconds = load, restart_seconds = job.restart,
    repair_seconds = repair, ways = ways(clone(job, { repair = repair }), every * step.step_seconds, step, share),
    assumed = lacking, seed = seed, failures = simulated,
  }
end

local function time(seconds) return seconds < 60 and words.duration(seconds) or cost.long(seconds) end
local function percent(share) return ("%.3g %%"):format(100 * share) end

local function first(g)
  local text = "%s of the time, with %s for restarts, %s for work done again, %s for saves; a failure every %s"
  text = text:format(percent(g.goodput), percent(g.restarts), percent(g.again), percent(g.saves), time(g.mtbf_seconds))
  if g.mtbf_seconds > g.restart_seconds then return text end
  return ("%s is less than a restart takes, %s: the job hardly gets on"):format(text, time(g.restart_seconds))
end

local function of_ways(g, step)
  local parts = {}
  for i, way in ipairs(g.ways) do
    local how = way.what == "wait" and "if the job waits for it" or way.what == "spares"
      and "with " .. words.count(way.spares, "spare host")
      or ("on fewer (--min-ranks %d)"):format(way.fewest_hosts * step.ranks // g.hosts)
    parts[i] = ("%s %s"):format(percent(way.goodput), how)
  end
  return ("a lost host that is away for %s: %s"):format(time(g.repair_seconds), table.concat(parts, ", "))
end

local function of_assumed(g)
  local parts = {}
  for i, name in ipairs(g.assumed) do parts[i] = ("%s %.4g"):format(name, assumed[name]) end
  return "assumed, as the machine's file does not say it: " .. table.concat(parts, ", ")
end

-- The lines of an answer.
function M.lines(g, step, o)
  local lines = {
    first(g), ("%s, each fails every %s"):format(words.count(g.hosts, "host"), time(g.host_mtbf_seconds)),
    ("save every %s (%s), the best of simulations with saves beside the steps; Young %s, Daly %s"):format(
      words.count(g.every, "step"), time(g.interval_seconds), time(g.young_seconds), time(g.daly_seconds)),
    ("a checkpoint of %s is copied in %s, while steps wait, and safe %s later"):format(words.size(g.checkpoint_bytes),
      time(g.copy_seconds), time(g.write_seconds)),
    ("a restart takes %s, %s of it to load: each host reads all of the checkpoint"):format(time(g.restart_seconds),
      time(g.load_seconds)), of_ways(g, step),
  }
  if #g.assumed > 0 then lines[#lines + 1] = of_assumed(g) end
  if o.steps > 0 or o.tokens > 0 then
    local seconds = cost.asked(step, o) * step.step_seconds
    if g.goodput == 0 then return table.move({ "the steps would never end" }, 1, 1, #lines + 1, lines) end
    lines[#lines + 1] = ("with failures and saves %s, %s more; some %.3g failures"):format(time(seconds / g.goodput),
      time(seconds / g.goodput - seconds), seconds / g.goodput / g.mtbf_seconds)
  end
  return lines
end

return M
