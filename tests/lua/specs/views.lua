-- SPDX-License-Identifier: Apache-2.0
--
-- Two tensors of samples as one of twice the batch, as views of a contrastive loss or real and made-up images are: the
-- remedy that concat names has the values and gradients of two calls.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local x, y = {}, {}
for i = 1, 5 do x[i], y[i] = { math.sin(i), math.cos(i) }, { math.sin(2 * i), math.cos(3 * i) } end
local batch = { x = orrery.tensor(x, "f64"), y = orrery.tensor(y, "f64") }

local function trained(loss_of)
  orrery.seed(1)
  local model = nn.sequential { nn.linear(2, 3, { dtype = "f64" }), nn.tanh, nn.linear(3, 2, { dtype = "f64" }) }
  local run = orrery.compile(function(b) return loss_of(model, b) end,
    { params = model, optimizer = optim.sgd { lr = 0.1 }, microbatches = 2 })
  local losses = {}
  for i = 1, 3 do losses[i] = run:step(batch):mean() end
  return losses, model[1].weight:read():tolist()
end
local function distance(a, b) return nn.mse(a, b * 2) end
local apart, of_two = trained(function(model, b) return distance(model(b.x), model(b.y)) end)
local together, of_one = trained(function(model, b)
  local B = b.x.shape[1]
  local both = model(orrery.stack({ b.x, b.y }, 2):flatten(1, 2))
  return distance(both:view(B, 2, -1):unbind(2))
end)
for i = 1, 3 do
  assert(math.abs(apart[i] - together[i]) < 1e-13)
  for k = 1, 2 do assert(math.abs(of_two[i][k] - of_one[i][k]) < 1e-13) end
end

local ok, message = pcall(trained, function(model, b) return model(orrery.concat({ b.x, b.y }, 1)):mean() end)
assert(not ok and message:find("concat: joins tensors along dim 1 of [5,2], the batch; two for each sample, one after another, "
  .. "are orrery.stack({a, b}, 2):flatten(1, 2)", 1, true), message)
