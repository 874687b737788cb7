-- SPDX-License-Identifier: Apache-2.0
--
-- Schedules over 100 steps: a line for each with its name and its rates. schedules.py has PyTorch's.
local orrery = require "orrery"
local optim = orrery.optim

local schedules = {
  step = optim.step { peak = 0.5, every = 30 },
  step_half = optim.step { peak = 0.5, every = 7, gamma = 0.5 },
  multistep = optim.multistep { peak = 0.5, at = { 10, 40, 40, 75 } },
  exponential = optim.exponential { peak = 0.5, gamma = 0.95 },
  cosine = optim.cosine { peak = 0.5, steps = 100, floor = 0.01 },
  cosine_warm = optim.cosine { peak = 0.5, steps = 100, warmup = 10 },
  linear = optim.linear { peak = 0.5, steps = 80, floor = 0.1 },
  linear_warm = optim.linear { peak = 0.5, steps = 100, warmup = 20 },
  polynomial = optim.polynomial { peak = 0.5, steps = 80, power = 2 },
  polynomial_one = optim.polynomial { peak = 0.5, steps = 100 },
  cosine_restarts = optim.cosine_restarts { peak = 0.5, period = 30, floor = 0.01 },
  cosine_restarts_longer = optim.cosine_restarts { peak = 0.5, period = 10, factor = 2 },
  one_cycle = optim.one_cycle { peak = 0.5, steps = 100 },
  one_cycle_linear = optim.one_cycle { peak = 0.5, steps = 100, up = 0.25, start = 10, final = 100, shape = "linear" },
  one_cycle_three = optim.one_cycle { peak = 0.5, steps = 100, up = 0.4, phases = 3 },
  chained = optim.chained {
    function(step) return 0.2 + 0.8 * math.min((step - 1) / 10, 1) end, optim.exponential { peak = 0.5, gamma = 0.95 },
    optim.step { peak = 1, every = 30 },
  },
  sequential = optim.sequential({
    function(step) return 0.5 * (0.2 + 0.8 * (step - 1) / 10) end, optim.exponential { peak = 0.5, gamma = 0.9 },
    optim.step { peak = 0.5, every = 20 },
  }, { 10, 30 }),
}

-- Told of a value after each step.
local values = {}
for step = 1, 100 do values[step] = 2 / (1 + 0.1 * math.min(step, 40)) + 0.05 * math.sin(step) end
for name, options in pairs {
  plateau = { patience = 3 }, plateau_cool = { factor = 0.5, patience = 1, cooldown = 4, threshold_mode = "abs", threshold = 0.02 },
  plateau_max = { mode = "max", factor = 0.8, patience = 0, floor = 0.1, threshold = 0.1, eps = 0.05 },
  plateau_max_abs = { mode = "max", factor = 0.9, patience = 2, cooldown = 1, threshold_mode = "abs" },
} do
  options.peak, options.name = 0.5, name
  local rate = optim.plateau(options)
  schedules[name] = function(step)
    local now = rate(step)
    rate:step(values[step])
    return now
  end
end

for name, schedule in pairs(schedules) do
  local line = { name }
  for step = 1, 100 do line[step + 1] = ("%.17g"):format(schedule(step)) end
  orrery.log("%s", table.concat(line, " "))
end
