-- SPDX-License-Identifier: Apache-2.0
--
-- What collectives take and give back, in one process: every tensor of a value, at its place.
local orrery = require "orrery"
local world, tensor = orrery.world, orrery.tensor

local given = { tensor { 1, 2 }, { { 3 }, { 4 } }, orrery.nn.linear(1, 1) }
local all = world:allreduce(given, { op = "max" })
assert(#all == 3 and all[1]:tolist()[2] == 2 and all[2]:tolist()[2][1] == 4)
assert(orrery.type(all[3][1]) == "State" and #all[3] == 2, "states change in place")
assert(orrery.type(world:allgather(given)[3][1]) == "HostTensor")
local rows, counts = world:alltoall { 5, 6 }
assert(rows:tolist()[2] == 6 and counts[1] == 2 and #counts == 1)
local handle = world:allreduce_async { 7 }
assert(handle:wait():item() == 7 and handle:wait():item() == 7 and handle:poll())

local function refused(part, call, ...)
  local ok, why = pcall(world[call], world, ...)
  assert(not ok and why:find(part, 1, true), why)
end
refused("nil given, expected a HostTensor", "allreduce", nil)
refused("a list with nothing at place 2 given", "allreduce", { tensor { 1 }, nil, tensor { 2 } })
refused("a table with the key 'loss' given", "allreduce", { loss = tensor { 1 } })
refused("'x' given, expected a HostTensor", "allgather", { "x" })
refused("alltoall takes one tensor, not a list", "alltoall", { tensor { 1 } })
local circle = {}
circle[1] = circle
refused("nested deeper than 8 levels, or contains itself", "allreduce", circle)
