-- SPDX-License-Identifier: Apache-2.0
--
-- What the GPT of strategies.lua has not: rotary positions by head, gated layers in two forms, separate
-- projections, rmsnorm, a head with a bias over classes that no number of ranks divides.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
orrery.seed(3)
local ctx, heads, dim, classes, batch = 16, 4, 32, 99, 8

local function rotate(x)
  local half = dim // heads // 2
  local a, b = x:reshape(batch, ctx, heads, 2 * half):split(-1, { half, half })
  local frequency = (orrery.iota(half):cast("f32") * -0.5):exp():reshape(1, 1, half)
  local angle = orrery.iota(ctx):cast("f32"):reshape(ctx, 1, 1) * frequency
  local c, s = angle:cos(), angle:sin()
  return orrery.concat({ a * c - b * s, a * s + b * c }, -1):reshape(batch, ctx, dim)
end

local Block = nn.module("Block", function(m)
  m.ln1, m.ln2 = nn.rmsnorm(dim), nn.rmsnorm(dim)
  for _, name in ipairs { "q", "k", "v", "o" } do m[name] = nn.linear(dim, dim, { bias = false }) end
  m.gate, m.up, m.down = nn.linear(dim, 96), nn.linear(dim, 96), nn.linear(96, dim)
  m.fused, m.back = nn.linear(dim, { 48, 48 }), nn.linear(48, dim)
  return function(x)
    local y = m.ln1(x)
    x = x + m.o(nn.attention(rotate(m.q(y)), rotate(m.k(y)), m.v(y), { heads = heads, causal = true }))
    y = m.ln2(x)
    x = x + m.down(nn.silu(m.gate(y)) * m.up(y))
    local a, b = m.fused(x)
    return x + m.back(nn.sigmoid(a) * b)
  end
end)

local Gated = nn.module("Gated", function(m)
  m.tok, m.blocks = nn.embedding(classes, dim), nn.sequential(2, function() return Block() end)
  m.norm, m.head = nn.rmsnorm(dim), nn.linear(dim, classes)
  return function(ids) return m.head(m.norm(m.blocks(m.tok(ids)))) end
end)

local model = Gated()
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
  params = model, optimizer = optim.adamw { lr = 3e-3 }, clip = 0.5, microbatches = 4, strategy = STACK,
})
for step = 1, 5 do
  local x, y = {}, {}
  for i = 1, batch do
    x[i], y[i] = {}, {}
    for j = 1, ctx do
      x[i][j] = (step * 31 + i * 17 + j * (i + 3)) % classes
      y[i][j] = (x[i][j] * 5 + 7) % classes
    end
  end
  local result = run:step { x = orrery.tensor(x, "i32"), y = orrery.tensor(y, "i32") }
  orrery.log("step %d loss %.17g norm %.17g", step, result:mean(), result:get("grad_norm"))
end
orrery.log("digest %s", orrery.digest(model))
