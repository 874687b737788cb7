-- SPDX-License-Identifier: Apache-2.0
-- A step with a row softmax of a width that no case of the judge has.
local orrery = require "orrery"
local nn = orrery.nn
local model = nn.linear(4, 77)
local run = orrery.compile(function(b) return nn.mse(nn.softmax(model(b.x)), b.y) end,
  { params = model, optimizer = orrery.optim.sgd { lr = 0.1 } })
local x, y = {}, {}
for i = 1, 6 do
  x[i], y[i] = { i, 1.0, 0.5, -i }, {}
  for j = 1, 77 do y[i][j] = (i * j % 3) / 3 end
end
run:step { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "f32") }
