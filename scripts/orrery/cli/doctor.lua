-- SPDX-License-Identifier: Apache-2.0
--
-- `orrery doctor`: what this machine offers and which plugins work on it.
local _, orrery = ...
local survey = require "orrery.cli.survey"
local words = require "orrery.plan.words"
local json = require "orrery.watch.json"

local function gpu_driver()
  local file = io.open "/proc/driver/nvidia/version"
  local line = file and file:read "l"
  if file then file:close() end
  return line or "no NVIDIA driver here"
end

-- The facts that are reported, { name, text }, in the order of printing.
local function facts(ranks)
  local m = orrery.engine.machine(ranks)
  local all = {
    { "version", m.version }, { "compiler", m.compiler }, { "lua", m.lua }, { "cpu", m.cpu },
    { "features", m.features },
    { "cores", ("%d allowed of %d"):format(m.allowed, m.online) },
    { "topology", ("%s, %s; allowed: %s, %s%s"):format(words.count(m.packages, "package"),
      words.count(m.nodes, "NUMA node"), words.count(m.cores, "core"), words.count(m.threads, "hardware thread"),
      m.here and "" or " (not this machine)") },
    { "memory", ("%s available of %s"):format(words.size(m.memory_available), words.size(m.memory_total)) },
    { "shared memory", m.shared_total
      and ("%s free of %s"):format(words.size(m.shared_available), words.size(m.shared_total))
      or "/dev/shm is not there; mount a tmpfs on it" },
    { "gpu", gpu_driver() }, { "launched by", m.launched_by },
  }
  for rank, share in ipairs(m.shares) do
    local pinned = share.cpus == "" and "not pinned: CPUs cannot be shared evenly" or "pinned to CPUs " .. share.cpus
    all[#all + 1] = { ("rank %d"):format(rank - 1), ("%s, %s"):format(pinned, words.count(share.threads, "thread")) }
  end
  return all
end

return function(o)
  local all, states = facts(o.ranks or 0), survey.plugins()
  local left_out = survey.left_out(states)
  for _, s in ipairs(states) do
    for _, fact in ipairs(survey.facts(s)) do all[#all + 1] = { s.name .. " " .. fact.name, fact.text } end
  end
  if o.json then
    for i, fact in ipairs(all) do all[i] = ("  %s: %s,\n"):format(json.encode(fact[1]), json.encode(fact[2])) end
    io.write(("{\n%s  \"left out\": %s,\n  \"plugins\": %s\n}"):format(table.concat(all), json.encode(left_out, "  "),
      json.encode(states, "  ")), "\n")
    return
  end
  for _, fact in ipairs(all) do io.write(("%-14s %s"):format(fact[1], fact[2]), "\n") end
  for _, s in ipairs(states) do
    io.write(("%-14s %s %s: %s"):format(s.on and "plugin on" or "plugin off", s.kind, s.name,
      s.on and s.summary or s.reason), "\n")
  end
  for _, each in ipairs(left_out) do
    io.write(("%-14s %s; install that and build again"):format("left out", (each:gsub(": ", ": it takes ", 1))), "\n")
  end
end
