-- SPDX-License-Identifier: Apache-2.0
-- What the words refuse: one case each, named by its argument.
local orrery = require "orrery"
local nn, optim, world = orrery.nn, orrery.optim, orrery.world
local case = orrery.args { case = "" }.case
local rank = world.rank
local x = orrery.tensor({ { 1, 2, 3 }, { 4, 5, 6 } }, "f32")
local y = orrery.tensor({ { 1, 2 }, { 3, 4 }, { 5, 6 } }, "f32")

local cases = {}

function cases.shape()
  if rank == 0 then world:allreduce(x) -- mine
  else world:allreduce(y) end -- theirs
end

function cases.dtype()
  if rank == 0 then world:broadcast(x) -- mine
  else world:broadcast(orrery.tensor(x:tolist(), "f64")) end -- theirs
end

function cases.operation()
  if rank == 0 then world:allreduce(x) -- mine
  else world:allgather(x) end -- theirs
end

function cases.name()
  if rank == 0 then world:allreduce(x, { name = "loss" }) -- mine
  else world:allreduce(x, { name = "norm" }) end -- theirs
end

function cases.op()
  if rank == 0 then world:allreduce(x, { op = "sum" }) -- mine
  else world:allreduce(x, { op = "max" }) end -- theirs
end

function cases.root() world:broadcast(x, { root = rank }) end -- mine

-- Both have begun the same two, in another order.
function cases.order()
  local a, b
  if rank == 0 then
    a = world:allreduce_async(x, { name = "a" }) -- mine
    b = world:allreduce_async(y, { name = "b" })
  else
    b = world:allreduce_async(y, { name = "b" }) -- theirs
    a = world:allreduce_async(x, { name = "a" })
  end
  return a:wait(), b:wait()
end

-- An async word that nobody waits for.
function cases.unawaited()
  if rank == 0 then world:allreduce_async(x) -- mine
  else world:allreduce_async(y) end -- theirs
end

function cases.trailing()
  if rank == 0 then world:allgather(x) -- mine
  else world:allgather(y) end -- theirs
end

function cases.list()
  if rank == 0 then world:allreduce { x, y } -- mine
  else world:allreduce { x } end -- theirs
end

function cases.group()
  if rank == 0 then world:group { 0 } -- mine
  else world:group { 1 } end -- theirs
end

function cases.join()
  if rank == 0 then world:allgather(x) -- mine
  else world:join() end -- theirs
end

function cases.join_max()
  if rank == 0 then world:allreduce(x, { op = "max" }) -- mine
  else world:join() end -- theirs
end

local function trained()
  local model = nn.linear(3, 1)
  local run = orrery.compile(function(batch) return model(batch.x):mean() end,
    { params = model, optimizer = optim.sgd { lr = 0.1 }, microbatches = 2 })
  run:step { x = x }
  return run
end

-- A step of training and a word change places.
function cases.step()
  local run = trained()
  if rank == 0 then
    world:allreduce(x) -- mine
    run:step { x = x }
  else
    run:step { x = x }
    world:allreduce(x)
  end
end

function cases.join_step()
  local run = trained()
  if rank == 0 then run:step { x = x } else world:join() end -- theirs
end

-- One waits in the world, the other in a group of both.
function cases.communicators()
  local both = world:group { 0, 1 }
  if rank == 0 then world:allreduce(x) -- mine
  else both:allreduce(x) end -- theirs
end

function cases.message()
  if rank == 0 then world:recv(x, { from = 1 }) -- mine
  else world:barrier() end -- theirs
end

function cases.member()
  local first = world:group { 0 }
  first:allreduce(x) -- mine
  world:barrier()
end

function cases.no_rank() world:group { 0, 2 } end -- mine
function cases.twice() world:group { 0, 0 } end -- mine
function cases.empty() world:group {} end -- mine
function cases.nested() world:group { 0, 1 }:group { 0 } end -- mine
function cases.big_root() world:broadcast(x, { root = 2 }) end -- mine
function cases.unknown_op() world:allreduce(x, { op = "avg" }) end -- mine
function cases.whole_mean() world:allreduce(orrery.tensor { 1, 2 }, { op = "mean" }) end -- mine
function cases.scalar() world:allgather(1.5) end -- mine
function cases.splits() world:alltoall(x, { splits = { 1, 2 } }) end -- mine
function cases.uneven() world:alltoall(y) end -- mine
function cases.to_itself() world:send(x, { to = rank }) end -- mine
function cases.to_nobody() world:send(x, { to = 7 }) end -- mine
function cases.a_string() world:allreduce "x" end -- mine
function cases.object() world:allgather_object { f = print } end -- mine
function cases.circle()
  local t = {}
  t.t = t
  world:allgather_object(t) -- mine
end
function cases.dot() world.barrier() end -- mine
function cases.handle() world:allreduce_async(x).wait() end -- mine
function cases.option() world:allreduce(x, { opp = "sum" }) end -- mine

cases[case]()
