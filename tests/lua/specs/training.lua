-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local function near(a, b) assert(math.abs(a - b) < 1e-5, ("%g, expected %g"):format(a, b)) end

-- Gradients of mean((w x + b - y)^2) at w = 2, b = 1.
local net = nn.linear(1, 1)
net.weight:write { { 2 } }
net.bias:write { 1 }
local batch = { x = { { 1.0 }, { 3.0 } }, y = { { 0.5 }, { 9.0 } } }
local function loss(b) return nn.mse(net(b.x), b.y) end
local value, gradients = orrery.value_and_grad(loss, net)(batch)
near(value, (2.5 ^ 2 + 2 ^ 2) / 2)
near(gradients[1]:read():item(), 2.5 - 2)
near(gradients[2]:read():item(), 2.5 * 1 - 2 * 3)

-- One step of plain descent, with a factor that changes without a new trace.
local factor = orrery.input("factor", 1)
local run = orrery.compile(function(b) return loss(b) * factor, { twice = loss(b) * 2 } end,
  { params = net, optimizer = optim.sgd { lr = 0.1 } })
local result = run:step(batch)
near(result:mean(), value)
near(result:get "twice", 2 * value)
near(net.weight:read():item(), 2 - 0.1 * -3.5)
local before = net.weight:read():item()
factor:set(0)
run:step(batch)
near(net.weight:read():item(), before)
assert(run.steps == 2)

-- Frozen parameters stay; the others move.
local two = nn.sequential { nn.linear(1, 2), nn.tanh, nn.linear(2, 1) }
nn.freeze(two[1])
local frozen, moving = two[1].weight:read():tolist(), two[3].weight:read():tolist()
orrery.compile(function(b) return nn.mse(two(b.x), b.y) end, {
  params = two, optimizer = optim.adamw { lr = 0.1 },
}):step(batch)
assert(two[1].weight:read():tolist()[1][1] == frozen[1][1])
assert(two[3].weight:read():tolist()[1][1] ~= moving[1][1])

-- AdamW's first step has the size of the rate, whatever the gradient.
local one = nn.linear(1, 1, { bias = false })
one.weight:write { { 1 } }
orrery.compile(function(b) return one(b.x):mean() end, {
  params = one, optimizer = optim.adamw { lr = 0.1, decay = 0.5 },
}):step(batch)
near(one.weight:read():item(), 1 - 0.1 * (1 + 0.5))

-- A function of tensors: several results, numbers as arguments.
local both = orrery.func(function(x, at) return x:sum(1), x:slice_at(1, at, 1) end)
local sum, row = both({ { 1.5, 2.0 }, { 3.0, 4.0 } }, 1)
near(sum:tolist()[1], 4.5)
near(row:tolist()[1][2], 4)

-- Saving and loading continues.
local path = os.tmpname()
os.remove(path)
run:save(path, "note")
local saved = net.weight:read():item()
factor:set(1)
run:step(batch)
assert(net.weight:read():item() ~= saved)
local steps, extra = run:load(path)
assert(steps == 2 and extra == "note" and net.weight:read():item() == saved)
for _, name in ipairs { "1/shard-00001-model-00001-of-00001.safetensors", "1", "checkpoint.json" } do
  os.remove(path .. "/" .. name)
end
os.remove(path)

-- A table of many rows that is read in two places of the loss: both add to its gradient.
local table_of_many = nn.embedding(40, 1)
table_of_many.weight:write(orrery.func(function() return orrery.zeros { 40, 1 } end)())
local twice = orrery.compile(function(b)
  return (table_of_many(b.x):sum { 2, 3 } + table_of_many(b.y):sum { 2, 3 } * 2):mean()
end, { params = table_of_many, optimizer = optim.sgd { lr = 1 }, microbatches = 2 })
local seen = twice:step { x = orrery.tensor({ { 1 }, { 2 } }, "i32"), y = orrery.tensor({ { 2 }, { 3 } }, "i32") }
assert(math.abs(seen:get "grad_norm" - math.sqrt(0.5 ^ 2 + 1.5 ^ 2 + 1)) < 1e-6)
for row, change in ipairs { 0, -0.5, -1.5, -1, 0 } do
  assert(table_of_many.weight:read():tolist()[row][1] == change, "row " .. row)
end
