-- SPDX-License-Identifier: Apache-2.0
--
-- Steps, then an evaluation that needs more memory than they, then steps again.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
orrery.seed(3)

local model = nn.sequential { nn.linear(8, 24), nn.tanh, nn.linear(24, 4) }
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
  params = model, optimizer = optim.adamw { lr = 1e-2 },
})

local function batch(rows)
  local x, y = {}, {}
  for i = 1, rows do
    x[i], y[i] = {}, i % 4
    for j = 1, 8 do x[i][j] = math.sin(i * j) end
  end
  return { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "i32") }
end

for _, rows in ipairs { 4, 256, 4 } do
  for _ = 1, 4 do orrery.log("loss %.9g", run:step(batch(4)):mean()) end
  orrery.log("of %d rows %.9g", rows, run:eval(batch(rows)):mean())
end
orrery.log("digest %s", orrery.digest(model))
