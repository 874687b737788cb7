-- SPDX-License-Identifier: Apache-2.0
--
-- A loop of one's own: local gradients, an optimizer written here, and raw collectives. The ranks
-- train alone and average their weights every few steps.
local orrery = require "orrery"
local nn, optim, world = orrery.nn, orrery.optim, orrery.world
local args = orrery.args { steps = 200, batch = 32, every = 8, lr = 0.01, seed = 1 }
orrery.seed(args.seed)

-- Lion (Chen et al., 2023): the sign of an interpolated momentum.
local lion = optim.define("lion", {
  options = { lr = 1e-4, b1 = 0.9, b2 = 0.99, decay = 0 },
  states = { "m" },
  update = function(p, g, s, o)
    local direction = (s.m * o.b1 + g * (1 - o.b1)):sign()
    return p - (direction + p * o.decay) * o.lr, { m = s.m * o.b2 + g * (1 - o.b2) }
  end,
})

local x, y = {}, {}
for i = 1, 512 do
  local a, b = math.random() * 2 - 1, math.random() * 2 - 1
  x[i], y[i] = { a, b }, { a * b }
end
local data = orrery.data.arrays { x = x, y = y }:shard(world.rank, world.size)

local model = nn.sequential { nn.linear(2, 32), nn.tanh, nn.linear(32, 1) }
local function loss_of(batch) return nn.mse(model(batch.x), batch.y) end
local gradients_of = orrery.value_and_grad(loss_of, model)
local optimizer = lion { lr = optim.linear { peak = args.lr, steps = args.steps } }:attach(model)

world:broadcast(model)
local start = orrery.time()
for step, batch in data:batches { size = args.batch, steps = args.steps } do
  local loss, gradients = gradients_of(batch)
  optimizer:update(gradients)
  if step % args.every == 0 then world:allreduce(model, { op = "mean" }) end
  if step % 50 == 0 then
    orrery.log("step %d loss %.6f  %.3f ms", step, loss, (orrery.time() - start) * 1000 / step)
  end
end
world:allreduce(model, { op = "mean" })
orrery.log("digest %s", orrery.digest(model))
