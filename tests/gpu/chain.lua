-- SPDX-License-Identifier: Apache-2.0
--
-- Twenty steps through long pointwise chains, as residual networks have them; a line for each step:
-- loss, gradient norm.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
orrery.seed(11)

local Block = nn.module("Block", function(m, dim)
  m.norm, m.f = nn.layernorm(dim), nn.linear(dim, dim)
  return function(x)
    local y = m.f(nn.silu(m.norm(x)) * 0.5 + nn.sigmoid(x) * nn.tanh(x))
    return nn.relu(x + y * 0.7 - nn.gelu(y) * 0.1) + x * 0.25
  end
end)
local Net = nn.module("Net", function(m)
  m.first = nn.linear(24, 48)
  m.blocks = nn.sequential(4, function() return Block(48) end)
  m.last = nn.linear(48, 6)
  return function(x) return m.last(m.blocks(m.first(x))) end
end)

local x, y = {}, {}
for i = 1, 120 do
  x[i], y[i] = {}, i % 6
  for j = 1, 24 do x[i][j] = math.sin(i * 0.7 + j * (1 + i % 6)) end
end
local data = orrery.data.arrays { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "i32") }
local model = Net()
local run = orrery.compile(function(batch) return nn.cross_entropy(model(batch.x), batch.y) end, {
  params = model, optimizer = optim.adamw { lr = 1e-3 }, clip = 1.0,
})
for _, batch in data:batches { size = 30, steps = 20 } do
  local result = run:step(batch)
  orrery.log("%.9g %.9g", result:mean(), result:get "grad_norm")
end
