-- SPDX-License-Identifier: Apache-2.0
local optim = require "orrery".optim
local function near(a, b) assert(math.abs(a - b) < 1e-12, ("%g, expected %g"):format(a, b)) end
local cosine = optim.cosine { peak = 2, warmup = 10, steps = 110, floor = 1 }
near(cosine(1), 0.2)
near(cosine(10), 2)
near(cosine(11), 2)
near(cosine(61), 1.5)
near(cosine(110), 1 + 0.5 * (1 + math.cos(math.pi * 0.99)))
near(cosine(111), 1)
near(cosine(500), 1)
local linear = optim.linear { peak = 4, warmup = 0, steps = 4 }
near(linear(1), 4)
near(linear(4), 1)
near(linear(5), 0)
near(optim.constant { peak = 3, warmup = 2 }(1), 1.5)
near(optim.constant { peak = 3, warmup = 2 }(9), 3)

-- After a warm-up the steps count anew; one with the peak has come before.
near(optim.step { peak = 2, every = 3, warmup = 4, gamma = 0.5 }(2), 1)
for step, rate in pairs { [4] = 2, [5] = 2, [7] = 2, [8] = 1, [10] = 1, [11] = 0.5 } do
  near(optim.step { peak = 2, every = 3, warmup = 4, gamma = 0.5 }(step), rate)
end
near(optim.multistep { peak = 2, at = { 1, 3 }, warmup = 2 }(4), 0.2)
near(optim.exponential { peak = 2, gamma = 0.5, warmup = 1 }(4), 0.5)
near(optim.cosine_restarts { peak = 2, period = 4, warmup = 2, floor = 1 }(5), 1.5)
near(optim.cosine_restarts { peak = 2, period = 4, factor = 3 }(11), 1)
near(optim.polynomial { peak = 2, steps = 12, warmup = 2, power = 3 }(8), 0.25)
near(optim.one_cycle { peak = 50, steps = 10 }(99), 2e-4)
local chain = optim.sequential({ optim.constant { peak = 3 }, optim.linear { peak = 4, steps = 4 } }, { 2 })
near(chain(2), 3)
near(chain(3), 4)
near(chain(6), 1)

-- A run of one step has a rate, also where all steps are the warm-up's.
for _, name in ipairs { "cosine", "linear", "polynomial" } do
  near(optim[name] { peak = 3, steps = 1 }(1), 3)
  near(optim[name] { peak = 3, steps = 1, warmup = 1 }(1), 3)
  near(optim[name] { peak = 3, steps = 1, warmup = 1, floor = 0.5 }(2), 0.5)
end

-- A warm-up; what checkpoints keep; that a group and others may have it.
local plateau = optim.plateau { peak = 1, warmup = 2, patience = 0, factor = 0.5 }
near(plateau(1), 0.5)
near(plateau:step(3), 1)
near(plateau:step(4), 0.5)
near(plateau(1), 0.25)
near(plateau(3), 0.5)
near(optim.sequential({ plateau, optim.constant { peak = 7 } }, { 5 })(4), 0.5)
local orrery = require "orrery"
local net = orrery.nn.linear(1, 1)
local run = orrery.compile(function(b) return net(b.x):mean() end, { params = net, optimizer = optim.sgd { lr = plateau } })
local batch, path = { x = { { 1.0 } } }, os.tmpname()
os.remove(path)
local function bias_after_step()
  local before = net.bias:read():item()
  run:step(batch)
  return before - net.bias:read():item()
end
near(bias_after_step(), 0.25)
run:save(path)
near(plateau:step(5), 0.25)
bias_after_step()
assert(bias_after_step() == 0.25)
run:load(path)
near(plateau(3), 0.5)
near(plateau:step(3), 0.25) -- no better than the 3 before
os.execute(("rm -rf '%s'"):format(path))

local function refused(words, make, ...)
  local ok, message = pcall(make, ...)
  assert(not ok and message:find(words, 1, true), ("'%s', expected '%s'"):format(tostring(message), words))
end
refused("step: every is missing", optim.step, { peak = 1 })
refused("step: every = 0, expected at least 1", optim.step, { peak = 1, every = 0 })
refused("unknown option 'steps'", optim.step, { peak = 1, every = 2, steps = 3 })
refused("multistep: at is missing", optim.multistep, { peak = 1 })
refused("multistep: at has 2 after 5, expected them ascending", optim.multistep, { peak = 1, at = { 5, 2 } })
refused("multistep: at is a table, expected a list of numbers", optim.multistep, { peak = 1, at = { "5" } })
refused("cosine_restarts: factor = 0, expected at least 1", optim.cosine_restarts, { peak = 1, period = 3, factor = 0 })
refused('one_cycle: shape = "cosine": give "cos" or "linear"', optim.one_cycle, { peak = 1, steps = 10, shape = "cosine" })
refused("one_cycle: phases = 4: give 2 or 3", optim.one_cycle, { peak = 1, steps = 10, phases = 4 })
refused("one_cycle: up = 0.6 of 10 steps, expected more than one step and less than 0.5", optim.one_cycle,
  { peak = 1, steps = 10, up = 0.6, phases = 3 })
refused("plateau: peak is missing", optim.plateau, {})
refused("plateau: factor = 1, expected at least 0 and less than 1", optim.plateau, { peak = 1, factor = 1 })
refused('plateau: mode = "least": give "min" or "max"', optim.plateau, { peak = 1, mode = "least" })
refused('plateau: threshold_mode = "relative": give "rel" or "abs"', optim.plateau, { peak = 1, threshold_mode = "relative" })
refused("value is '3', expected a number", plateau.step, plateau, "3")
refused("chained: give at least one schedule", optim.chained, {})
refused("chained: schedule 1 is number", optim.chained, { 3 })
refused("sequential: 1 schedules and 1 numbers of steps", optim.sequential, { chain }, { 1 })
refused("sequential: schedule 2 is number", optim.sequential, { chain, 1 }, { 1 })
refused("sequential: steps has 0 at place 1", optim.sequential, { chain, chain }, { 0 })
