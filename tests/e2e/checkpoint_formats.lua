-- SPDX-License-Identifier: Apache-2.0
-- Trains a model whose parameters ranks divide, some within rows, from a checkpoint if `from` names one, and saves it in a format of another program.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  from = "", to = "", format = "dcp", stack = "data", steps = 2, hidden = 1026, weights = "", extra = "", wait = true,
}
local stacks = {
  data = { strategy.data {} },
  zero = { strategy.data {}, strategy.zero { stage = 3 } },
  tensor = { strategy.tensor { size = 2, column = { "1" }, row = { "3" } } },
  pipeline = { strategy.pipeline { size = 2 }, strategy.data {} },
  both = { strategy.tensor { size = 2, column = { "1" }, row = { "3" } }, strategy.data {},
    strategy.zero { stage = 1 } },
}
orrery.seed(3)
local model = nn.sequential { nn.linear(8, args.hidden), nn.gelu, nn.linear(args.hidden, 8), nn.dropout(0.1) }
local run = orrery.compile(function(batch) return nn.mse(model(batch.x), batch.x) end,
  { params = model, optimizer = optim.adam { lr = 0.01 }, microbatches = 12, strategy = stacks[args.stack] })
if args.from ~= "" then
  local step, extra = run:load(args.from) -- load
  orrery.log("from %d '%s'", step, extra)
end
local rows = {}
for i = 1, 24 do
  rows[i] = {}
  for j = 1, 8 do rows[i][j] = math.sin(i * j) end
end
for step = run.steps + 1, args.steps do
  orrery.log("step %d loss %.17g", step, run:step { x = orrery.tensor(rows) }:mean())
end
if args.to ~= "" then run:save(args.to, { format = args.format, extra = args.extra, wait = args.wait }) end -- save
if not args.wait then run:finish_save() end
if args.weights ~= "" then model:save_weights(args.weights) end
orrery.log("digest %s", orrery.digest(model))
