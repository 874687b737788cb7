-- SPDX-License-Identifier: Apache-2.0
--
-- A training by run:fit, or by the loop that it stands for (`hand`). `stop`: the step after which a rank is told to stop;
-- `die`: after which it is killed, at its first start. `bumpy`: what is judged is smallest at step 24.
local orrery = require "orrery"
local nn, optim, world, strategy = orrery.nn, orrery.optim, orrery.world, orrery.strategy
local args = orrery.args {
  hand = false, dir = "", every = 0, saved = 0, keep = 2, epochs = 0, steps = 0, patience = 0, stop = 0, die = 0, zero = 0, bumpy = false, best = "",
  mode = "min",
}
orrery.seed(3)
local model = nn.sequential { nn.linear(2, 6), nn.batchnorm(6), nn.tanh, nn.dropout(0.1), nn.linear(6, 1) }
local bump = orrery.buffer({ 1 }, { name = "bump", init = 0 })
local stack = { strategy.data {} }
if args.zero > 0 then stack[2] = strategy.zero { stage = args.zero } end
local run = orrery.compile(function(b)
  local loss = nn.mse(model(b.x), b.y)
  return loss, { judged = args.bumpy and loss * 0 + bump:sum() or loss }
end, { params = model, optimizer = optim.adam { lr = 0.02 }, microbatches = 6, strategy = stack })
local function dataset(first, count)
  local x, y = {}, {}
  for i = first, first + count - 1 do x[#x + 1], y[#y + 1] = { math.sin(i), math.cos(2 * i) }, { math.sin(i) * 0.5 + math.cos(i) * 0.1 } end
  return orrery.data.arrays { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "f32") }
end
local train, test = dataset(1, 50), dataset(100, 17)

local first
local function after(step)
  first = first or step
  bump:write { math.abs((step - 20) % 60 - 4) }
  if step == args.stop and world.rank == world.size - 1 then os.execute "kill -USR1 $PPID" end
  if step == args.die and first == 1 and world.rank == world.size - 1 then os.execute "kill -KILL $PPID" end
end

if args.hand then
  local evaluated = {}
  local last
  local function evaluate(step) evaluated[#evaluated + 1] = ("%d:%.9g"):format(step, run:eval(test, { size = 12 }):mean()) end
  for step, batch, epoch in train:batches { size = 12, epochs = args.epochs } do
    if last and epoch ~= last then evaluate(step - 1) end
    last = epoch
    run:step(batch)
    after(step)
  end
  evaluate(run.steps)
  orrery.log("evaluated %s", table.concat(evaluated, " "))
else
  local ended = {}
  local done = run:fit {
    data = train, size = 12, epochs = args.epochs, steps = args.steps, eval = test, every = args.every, best = args.best, mode = args.mode,
    patience = args.patience, log = false,
    checkpoints = args.dir ~= "" and { dir = args.dir, every = args.saved > 0 and args.saved or nil, keep = args.keep } or nil,
    on = { step = after, epoch = function(epoch, entry) ended[#ended + 1] = epoch .. (entry and "" or "!") end },
  }
  local evaluated = {}
  for i, one in ipairs(done.history) do evaluated[i] = ("%d:%.9g"):format(one.step, one.results.loss) end
  orrery.log("evaluated %s", table.concat(evaluated, " "))
  if args.dir ~= "" or args.patience > 0 or args.steps > 0 then
    local best = done.best
    orrery.log("steps %d epochs %s stopped %s best %d at %s of %.9g ended %s", done.steps, done.epochs, done.stopped, best.step,
      best.path and best.path:match "[^/]+$", best.value, args.stop == 0 and table.concat(ended, " ") or "")
  end
end
orrery.log("digest %s", orrery.digest(model))
