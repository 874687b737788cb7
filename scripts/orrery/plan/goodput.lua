-- SPDX-License-Identifier: Apache-2.0
--
-- What is left of a job's time when hosts fail: the goodput, useful time / wall time, by formulas and by simulation.
--
-- All times are in seconds. A job: { hosts, mtbf (of one host), restart (from a failure until the steps go on, with
-- loading), copy and write (a save: the steps wait for its copy, and it is safe when it is written, beside the steps),
-- repair (how long a lost host is away; 0: it is back at the restart), spares, least (hosts with which the job goes
-- on), speed(hosts) (of the steps, 1 with all hosts) }.
local M = {}

-- Young, "A first order approximation to the optimum checkpoint interval", CACM 1974: the time between two saves.
-- `mtbf` is that of the job, `cost` what a save takes from the steps.
function M.young(cost, mtbf) return math.sqrt(2 * cost * mtbf) end

-- Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 2006, equation 37.
function M.daly(cost, mtbf)
  if cost >= 2 * mtbf then return mtbf end
  local x = cost / (2 * mtbf)
  return M.young(cost, mtbf) * (1 + math.sqrt(x) / 3 + x / 9) - cost
end

-- Draws of an exponential time whose mean is 1, the same for equal seeds: SplitMix64.
local function draws(seed)
  local state = seed
  return function()
    state = state + 0x9E3779B97F4A7C15
    local z = (state ~ (state >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ~ (z >> 27)) * 0x94D049BB133111EB
    return -math.log(1.0 - ((z ~ (z >> 31)) >> 11) * 0x1p-53)
  end
end

-- What has been done `t` seconds after the steps began, with a save after each `interval` of work: seconds of work, and
-- how much of it is safe. A save waits for the one before to be written.
local function progress(job, interval, t)
  if t <= interval then return math.max(t, 0), 0 end
  local period = job.copy + math.max(interval, job.write)
  local begun = (t - interval) // period -- periods since the first save
  local within = t - interval - begun * period
  local work = (begun + 1) * interval + math.min(math.max(within - job.copy, 0), interval)
  local safe = (t - interval - job.copy - job.write) // period + 1
  return work, math.max(safe, 0) * interval
end

-- Ends a start of the job after `t` seconds: `safe`, all of its work is saved first.
local function account(spent, job, interval, t, hosts, all_safe)
  local after, speed = t - job.restart, job.speed(hosts)
  local work, safe = progress(job, interval / speed, after - (all_safe and job.copy + job.write or 0))
  if all_safe then safe = work end
  spent.useful = spent.useful + speed * safe
  spent.slower = spent.slower + (1 - speed) * safe
  spent.again = spent.again + work - safe
  spent.saving = spent.saving + math.max(after, 0) - work
  spent.restarting = spent.restarting + math.min(t, job.restart)
  spent.wall, spent.fewest = spent.wall + t, math.min(spent.fewest, hosts)
end

-- Seconds of a job with so many failures: { wall, useful, again, saving, restarting, waiting (for hosts), slower (what
-- hosts that are away would have done) }, which add up to `wall`, and `fewest` hosts with which it went on.
function M.simulate(job, interval, failures, seed)
  local spent = { wall = 0, useful = 0, again = 0, saving = 0, restarting = 0, waiting = 0, slower = 0,
    fewest = job.hosts }
  local draw, away, first = draws(seed), {}, 1 -- away[first...]: when lost hosts are back
  while failures > 0 do
    while away[first] and away[first] <= spent.wall do first = first + 1 end
    local up = job.hosts + job.spares - (#away - first + 1)
    local hosts, back = math.min(job.hosts, up), up < job.hosts and away[first] - spent.wall
    if up < job.least then
      spent.waiting, spent.wall = spent.waiting + back, spent.wall + back
    else
      local fails = draw() * job.mtbf / hosts
      -- When a host is back the job saves, stops, and starts again with it.
      local stops = back and math.max(back, job.restart) + job.copy + job.write or math.huge
      account(spent, job, interval, math.min(fails, stops), hosts, stops <= fails)
      if fails < stops then
        failures = failures - 1
        if job.repair > 0 then away[#away + 1] = spent.wall + job.repair end
      end
    end
  end
  return spent
end

function M.goodput(job, interval, failures, seed)
  local spent = M.simulate(job, interval, failures, seed)
  return spent.useful / spent.wall, spent
end

-- How many steps of `step` seconds between two saves have the highest goodput in simulations with equal failures.
function M.best(job, step, failures, seed)
  local best, most, tried = 1, -1, {}
  local function try(steps)
    steps = math.max(1, math.floor(steps + 0.5))
    if tried[steps] then return end
    tried[steps] = true
    local goodput = M.goodput(job, steps * step, failures, seed)
    if goodput > most then best, most = steps, goodput end
  end
  local guess = math.max(M.daly(job.copy, job.mtbf / job.hosts), job.write, step) / step
  for i = -12, 12 do try(guess * 2 ^ (i / 3)) end
  local middle = best
  for i = -8, 8 do try(middle * 2 ^ (i / 24)) end
  return best
end

return M
