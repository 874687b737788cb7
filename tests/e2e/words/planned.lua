-- SPDX-License-Identifier: Apache-2.0
-- Words before a step, for `orrery plan`.
local orrery = require "orrery"
local world = orrery.world
local x = orrery.tensor({ { 1, 2, 3 }, { 4, 5, 6 }, { 7, 8, 9 }, { 0, 1, 2 } }, "f32")
assert(world:broadcast(x, { root = 3 }):tolist()[2][3] == 6)
assert(world:group({ 0, 3 }):allreduce(x, { op = "mean" }):tolist()[1][1] == 1)
assert(world:alltoall(x, { splits = { 1, 1, 2, 0 } }).shape[1] == 4)
assert(world:broadcast_object("said", { root = 2 }) == "said")
world:send(x, { to = 1 })
assert(world:recv(x, { from = 1 }).shape[2] == 3)
assert(world:join() == 0)
local model = orrery.nn.linear(3, 1)
orrery.compile(function(batch) return model(batch.x):mean() end,
  { params = model, optimizer = orrery.optim.sgd { lr = 0.1 } }):step { x = world:allgather { x, x }[1] }
