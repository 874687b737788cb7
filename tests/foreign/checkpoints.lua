-- SPDX-License-Identifier: Apache-2.0
-- Trains a model of odd sizes and saves it, or loads it and writes its tensors to one file.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { at = "", stack = "data", load = false, weights = "" }
local stacks = {
  data = { strategy.data {} },
  zero = { strategy.data {}, strategy.zero { stage = 3 } },
  tensor = { strategy.tensor { size = 2, column = { "1" }, row = { "3" } } },
  both = { strategy.data { size = 2 }, strategy.tensor { size = 2, column = { "1" }, row = { "3" } }, strategy.zero { stage = 1 } },
}
orrery.seed(1)
local model = nn.sequential { nn.linear(8, 1026), nn.gelu, nn.linear(1026, 8) }
local run = orrery.compile(function(batch) return nn.mse(model(batch.x), batch.x) end,
  { params = model, optimizer = optim.adam { lr = 0.01 }, microbatches = 4, strategy = stacks[args.stack] })
if args.load then
  run:load(args.at)
  model:save_weights(args.weights)
  return
end
local rows = {}
for i = 1, 8 do
  rows[i] = {}
  for j = 1, 8 do rows[i][j] = math.sin(i * j) end
end
for _ = 1, 2 do run:step { x = orrery.tensor(rows) } end
run:save(args.at)
