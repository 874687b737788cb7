-- SPDX-License-Identifier: Apache-2.0
-- Trains under a stack and saves until somebody ends it, so that it is hit at anything that a job does; `load` says what
-- was saved last.
local b = require "lib"
local args = b.orrery.args { save = "", stack = "data", load = false }
local nn, strategy = b.nn, b.strategy
local stacks = {
  data = function() return strategy.data {} end,
  zero3 = function() return { strategy.data {}, strategy.fsdp {} } end,
  pipeline = function() return strategy.pipeline {} end,
  average = function() return strategy.average { every = 3 } end,
  server = function() return strategy.server {} end,
}
local model = b.model
if args.stack == "pipeline" then
  model = nn.sequential { nn.linear(2, 8), nn.linear(8, 8), nn.linear(8, 8), nn.linear(8, 3) }
end
local run = b.orrery.compile(function(batch)
  return nn.cross_entropy(model(batch.x), batch.y)
end, { params = model, optimizer = b.optim.sgd { lr = 0.001 }, microbatches = 4, strategy = stacks[args.stack]() })
if args.load then
  run:load(args.save)
  b.orrery.log("loaded step %d", run.steps)
  return
end
io.open(args.save .. ".begun", "a"):write("."):close()
while true do
  run:step { x = b.x, y = b.y }
  if run.steps % 10 == 0 then run:save(args.save) end
end
