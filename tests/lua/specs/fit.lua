-- SPDX-License-Identifier: Apache-2.0
--
-- What run:fit refuses, and a stream; tests/e2e/fit_test.py has what it trains.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local model = nn.linear(1, 1)
local run = orrery.compile(function(b)
  local y = model(b.x)
  return nn.mse(y, b.x * 2), { gap = (y - b.x * 2):abs():mean(), rows = y }
end, { params = model, optimizer = optim.sgd { lr = 0.01 }, microbatches = 1 })
local data = orrery.data.arrays { x = { { 1.0 }, { 2.0 }, { 3.0 }, { 4.0 }, { 5.0 } } }
local stream = orrery.data.from(function()
  local n = 0
  return function()
    n = n + 1
    return n <= 7 and { x = { n / 4 } } or nil
  end
end, { dtypes = { x = "f32" } })

local function refused(part, options)
  local ok, why = pcall(run.fit, run, options)
  assert(not ok and tostring(why):find(part, 1, true) and tostring(why):find("fit.lua", 1, true), tostring(why))
end
refused("fit: data is 3", { data = 3, size = 2, epochs = 1 })
refused("fit: data is a table, expected a dataset or a stream; write orrery.data.arrays", { data = { x = { 1.0 } }, size = 2, epochs = 1 })
refused("fit: eval is a function, expected a dataset or a stream; give the dataset itself",
  { data = data, size = 2, epochs = 1, eval = data:batches { size = 2, epochs = 1 } })
refused("fit: give epochs or steps", { data = data, size = 2 })
refused("fit: give epochs or steps", { data = data, size = 2, epochs = 1, steps = 1 })
refused("fit: epochs is -1", { data = data, size = 2, epochs = -1 })
refused("fit: give epochs or steps", { data = data, size = 2, epochs = 1, steps = -1 })
refused("fit: steps is -1", { data = data, size = 2, steps = -1 })
refused("fit: eval_limit is -1", { data = data, size = 2, epochs = 1, eval = data, eval_limit = -1 })
refused("fit: eval_size and eval_limit", { data = data, size = 2, epochs = 1, eval_limit = 1 })
refused("fit: log is 0", { data = data, size = 2, epochs = 1, log = 0 })
refused("fit: log is 'often'", { data = data, size = 2, epochs = 1, log = "often" })
refused("fit: a stream has no epochs: give steps", { data = stream, size = 2, epochs = 1 })
refused("fit: a stream has no epochs: give every", { data = stream, size = 2, steps = 1, eval = data })
refused("fit: a stream has no epochs: give checkpoints.every", { data = stream, size = 2, steps = 1, checkpoints = { dir = "x" } })
refused("fit: best and patience", { data = data, size = 2, epochs = 1, patience = 1 })
refused("fit: best and patience", { data = data, size = 2, epochs = 1, best = "loss" })
refused("fit: every is the steps", { data = data, size = 2, epochs = 1, every = 1 })
refused("fit: mode is 'most'", { data = data, size = 2, epochs = 1, eval = data, best = "loss", mode = "most" })
refused("fit: mode is about best", { data = data, size = 2, epochs = 1, eval = data, mode = "max" })
refused("fit: checkpoints.dir is missing", { data = data, size = 2, epochs = 1, checkpoints = { every = 2 } })
refused("fit: checkpoints: unknown option 'best'", { data = data, size = 2, epochs = 1, checkpoints = { dir = "x", best = "loss" } })
refused("fit: on: unknown option 'batch'", { data = data, size = 2, epochs = 1, on = { batch = print } })
refused("fit: on.step is", { data = data, size = 2, epochs = 1, on = { step = 3 } })
assert(run.steps == 0)
refused("fit: best is 'gab', which no result has as a number (did you mean 'gap'?)", { data = data, size = 2, epochs = 1, eval = data, best = "gab" })
assert(run.steps == 1)
refused("fit: best is 'grad_norm', which no result has as a number; there are gap, loss", { data = data, size = 2, epochs = 1, eval = data, best = "grad_norm" })
assert(run.steps == 2)
refused("fit: best is 'rows', which no result has as a number", { data = data, size = 2, epochs = 1, eval = data, best = "rows" })

-- The last option of batches, and results of an evaluation that are no numbers.
local seen = {}
local done = run:fit {
  data = data, size = 2, steps = 8, eval = stream, eval_size = 3, every = 3, shuffle = false, log = false,
  on = { step = function(step, result, epoch) seen[#seen + 1] = ("%d:%d:%d"):format(step, result.step, epoch) end },
}
assert(done.steps == 8 and not done.stopped and #done.history == 2 and done.history[2].step == 8 and not done.best.path)
assert(done.history[1].results.gap and not done.history[1].results.rows)
assert(table.concat(seen, " ") == "4:4:2 5:5:2 6:6:3 7:7:3 8:8:3", table.concat(seen, " "))
done = run:fit { data = stream, size = 2, steps = 12, log = false }
assert(done.steps == 12 and #done.history == 0 and done.best == nil and done.epochs == nil)

-- A script's own `steps` may be what there is already.
done = run:fit { data = data, size = 2, steps = 0, eval = data, every = 1 }
assert(done.steps == 12 and #done.history == 0)

-- An evaluation of the first samples alone: those of x = 1 and 2.
done = run:fit { data = data, size = 2, steps = 13, eval = data, every = 1, eval_size = 1, eval_limit = 2, log = false }
local w, b = model.weight:read():item(), model.bias:read():item()
local by_hand = ((w * 1 + b - 2) ^ 2 + (w * 2 + b - 4) ^ 2) / 2
assert(math.abs(done.best.value - by_hand) < 1e-5 * by_hand, done.best.value .. " " .. by_hand)
