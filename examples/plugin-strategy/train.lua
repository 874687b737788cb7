-- SPDX-License-Identifier: Apache-2.0
--
-- A small model under one of the two: orrery run train.lua by=frugal, by=frugal_lua, or by=nothing.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local by = orrery.args { by = { "frugal", "frugal_lua", "nothing" } }.by
orrery.seed(1)

local stacks = {
  frugal = function() return { orrery.strategy.frugal {} } end,
  frugal_lua = function() return { require "frugal" {} } end,
  nothing = function() return {} end,
}

local Block = nn.module("Block", function(m)
  m.norm, m.a, m.b = nn.layernorm(32), nn.linear(32, 128), nn.linear(128, 32)
  return function(x) return x + m.b(nn.gelu(m.a(m.norm(x)))) end
end)
local model = nn.module("Model", function(m)
  m.blocks, m.head = nn.sequential(4, function() return Block() end), nn.linear(32, 1)
  return function(x) return m.head(m.blocks(x)) end
end)()

local run = orrery.compile(function(b) return nn.mse(model(b.x), b.y) end, {
  params = model, optimizer = optim.adamw { lr = 1e-3 }, microbatches = 2, strategy = stacks[by](),
})
local x, y = {}, {}
for i = 1, 16 do
  x[i], y[i] = {}, { i / 16 }
  for j = 1, 32 do x[i][j] = (i * j % 7 - 3) / 3 end
end
for _ = 1, 5 do
  run:step { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "f32") }
end
print("digest " .. orrery.digest(model))
