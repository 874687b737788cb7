-- SPDX-License-Identifier: Apache-2.0
--
-- A Horovod user's script, line by line: what one writes there stands above what one writes here.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { steps = 100, batch = 32, lr = 0.05, seed = 1 }

-- hvd.init()
local world = orrery.world
-- torch.manual_seed(seed)
orrery.seed(args.seed)

-- dataset = ...
local x, y = {}, {}
for i = 1, 512 do
  local a, b = math.random() * 2 - 1, math.random() * 2 - 1
  x[i], y[i] = { a, b }, { a > b and 1.0 or 0.0 }
end
-- sampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank())
local data = orrery.data.arrays { x = x, y = y }:shard(world.rank, world.size)

-- model = Net(); loss_fn = MSELoss()
local model = nn.sequential { nn.linear(2, 16), nn.tanh, nn.linear(16, 1) }
local loss_and_gradients = orrery.value_and_grad(function(batch) return nn.mse(model(batch.x), batch.y) end, model)
-- optimizer = SGD(model.parameters(), lr=args.lr * hvd.size())
local optimizer = optim.sgd { lr = args.lr * world.size }:attach(model)

-- hvd.broadcast_parameters(model.state_dict(), root_rank=0)
world:broadcast(model, { root = 0 })

for step, batch in data:batches { size = args.batch, steps = args.steps } do
  -- loss = loss_fn(model(data), target); loss.backward()
  local loss, gradients = loss_and_gradients(batch)
  -- optimizer = hvd.DistributedOptimizer(optimizer): averages the gradients before each step
  world:allreduce(gradients, { op = "mean" })
  -- optimizer.step()
  optimizer:update(gradients)
  if step % 25 == 0 then
    -- loss = hvd.allreduce(loss)
    local mean = world:allreduce(orrery.tensor({ loss }, "f32"), { op = "mean" })
    -- if hvd.rank() == 0: print(...)
    orrery.log("step %d loss %.6f", step, mean:item())
  end
end

-- hvd.allgather(tensor), of as many rows as each rank likes
local rows = world:allgather(orrery.tensor({ { world.rank, world.local_rank } }, "i32"))
orrery.log("%d of %d ranks have trained", rows.shape[1], world.size)
orrery.log("digest %s", orrery.digest(model))
