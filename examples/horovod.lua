-- SPDX-License-Identifier: Apache-2.0
--
-- A Horovod user's training script. At the right stands the line of Python that a line replaces.
local orrery = require "orrery"                          -- import torch, horovod.torch as hvd
local nn, optim = orrery.nn, orrery.optim
local args = orrery.args { steps = 100, batch = 32, lr = 0.05, seed = 1 }
local world = orrery.init()                              -- hvd.init()
orrery.seed(args.seed)                                   -- torch.manual_seed(args.seed)

local x, y = {}, {}
for i = 1, 512 do
  local a, b = math.random() * 2 - 1, math.random() * 2 - 1
  x[i], y[i] = { a, b }, { a > b and 1.0 or 0.0 }
end
local data = orrery.data.arrays { x = x, y = y }         -- dataset = TensorDataset(x, y)
  :shard(world.rank, world.size) -- DistributedSampler(dataset, size(), rank())

local model = nn.sequential { nn.linear(2, 16), nn.tanh, nn.linear(16, 1) } -- model = Net()
local gradients_of = orrery.value_and_grad(function(batch)
  return nn.mse(model(batch.x), batch.y)                 -- loss = F.mse_loss(model(x), y)
end, model)
local optimizer = optim.sgd { lr = args.lr * world.size } -- SGD(..., lr=lr * hvd.size())
  :attach(model)
world:broadcast(model, { root = 0 }) -- hvd.broadcast_parameters(model, 0)
local start = world:broadcast_object({ step = 1 }).step -- hvd.broadcast_object({"step": 1})["step"]

-- The last rank has fewer batches than the others: it joins them below when it has no more.
local last = args.steps - (world.size > 1 and world.rank == world.size - 1 and 2 or 0)
for step, batch in data:batches { size = args.batch, from = start, steps = last } do
  local loss, gradients = gradients_of(batch)            -- loss.backward()
  local handle = world:allreduce_async(gradients, -- handle = grouped_allreduce_async(
    { op = "mean", name = "gradients" })                 --   gradients, op=Average, name=...)
  local mean = world:allreduce(                          -- mean = hvd.allreduce(
    orrery.tensor({ loss }, "f32"), { op = "mean" })     --   loss, op=hvd.Average)
  optimizer:update(handle:wait()) -- hvd.synchronize(handle); optimizer.step()
  if step % 25 == 0 then
    orrery.log("step %d loss %.6f", step, mean:item()) -- if hvd.rank() == 0: print(mean.item())
  end
end
local longest = world:join()                             -- last = hvd.join()
world:broadcast(model, { root = longest }) -- hvd.broadcast_parameters(model, last)

local me = orrery.tensor({ { world.rank } }, "i32")      -- me = torch.tensor([[hvd.rank()]])
local rows = world:allgather(me)                         -- rows = hvd.allgather(me)
orrery.log("%d of %d ranks have trained", rows.shape[1], world.size)
orrery.log("digest %s", orrery.digest(model))
