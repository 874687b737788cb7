-- SPDX-License-Identifier: Apache-2.0
-- Each of two ranks has three of the six classes.
local b = require "lib"
local nn, args = b.nn, b.orrery.args { label = 0, ignore = -1 }
local model = nn.sequential { nn.linear(2, 4), nn.gelu, nn.linear(4, 6) }
local labels = {}
for i = 1, 8 do labels[i] = args.label end
local run = b.orrery.compile(function(batch) -- compile
  return nn.cross_entropy(model(batch.x), batch.y, { ignore = args.ignore }) -- here
end, { params = model, optimizer = b.optim.sgd { lr = 0.1 },
       strategy = b.orrery.strategy.tensor { size = b.orrery.world.size, column = { "3" } } })
run:step { x = b.x, y = b.orrery.tensor(labels, "i32") }
