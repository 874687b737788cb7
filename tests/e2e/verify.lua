-- SPDX-License-Identifier: Apache-2.0
-- Trains; before step `at` rank `rank` makes the file `file`, at which a kernel plugin of the test goes wrong.
local orrery = require "orrery"
local nn, optim, strategy, world = orrery.nn, orrery.optim, orrery.strategy, orrery.world
local args = orrery.args { stack = "data", steps = 9, file = "", rank = 0, at = 7 }
orrery.seed(1)

local stacks = {
  data = function() return strategy.data {} end,
  zero3 = function() return { strategy.data {}, strategy.fsdp {} } end,
  pipeline = function() return strategy.pipeline {} end,
  tensor = function() return strategy.tensor {} end,
  average = function() return strategy.average { every = 2 } end,
  precision = function() return { strategy.precision {}, strategy.data {} } end,
  server = function() return strategy.server { mode = "async" } end,
}
local model = nn.sequential { nn.linear(8, 16), nn.dropout(0.1), nn.relu, nn.linear(16, 16), nn.relu, nn.linear(16, 4) }
local run = orrery.compile(function(b)
  return nn.mse(model(b.x), b.y) -- HERE
end, { params = model, optimizer = optim.adam { lr = 0.01 }, microbatches = 4, strategy = stacks[args.stack](), clip = 1 })
local x, y = {}, {}
for i = 1, 16 do
  x[i], y[i] = {}, {}
  for j = 1, 8 do x[i][j] = math.sin(i * j) end
  for j = 1, 4 do y[i][j] = x[i][j] ^ 2 end
end
local data = orrery.data.arrays { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "f32") }
for step, batch in data:batches { size = 8, steps = args.steps } do
  if args.file ~= "" and step == args.at and world.rank == args.rank then assert(io.open(args.file, "w")):close() end
  run:step(batch):mean()
  if world.rank == 0 then print("step", step) end
end
orrery.log("digest %s", orrery.digest(model))
