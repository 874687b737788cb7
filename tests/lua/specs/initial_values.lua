-- SPDX-License-Identifier: Apache-2.0
-- What a parameter begins with depends on the seed and on the order in which parameters are made.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local function numbers(state) return tostring(state:read()) end

-- Of equal names, before they belong to anything, and compiled apart.
local a, b = nn.linear(2, 2), nn.linear(2, 2)
assert(a.weight.name == b.weight.name)
assert(numbers(a.weight) ~= numbers(b.weight))
assert(numbers(a.weight) ~= numbers(a.bias))

local function critic()
  local net = nn.linear(3, 1)
  local run = orrery.compile(function(batch) return net(batch.x):mean() end,
    { params = net, optimizer = optim.sgd { lr = 0 } })
  run:step { x = { { 1.0, 2.0, 3.0 } } }
  return numbers(net.weight)
end
assert(critic() ~= critic())

-- A name that comes after the first read changes nothing, nor does the moment of that read.
local function values(read_first, later_seed)
  orrery.seed(7)
  local one, two = nn.linear(2, 2), nn.linear(2, 2)
  local early = read_first and numbers(one.weight)
  if later_seed then orrery.seed(later_seed) end
  local net = nn.sequential { nn.linear(1, 1), one, two }
  assert(not early or early == numbers(net[2].weight))
  return numbers(net[2].weight) .. " " .. numbers(net[3].weight)
end
local before = values(true)
assert(before == values(false) and before == values(true, 8) and before == values(false, 8))

-- Tied weights are one; frozen ones and those in lists have numbers of their own; what begins with
-- a constant does not count.
orrery.seed(7)
local tok = nn.embedding(2, 2)
local tied = nn.linear(2, 2, { tie = tok.weight, bias = false })
assert(numbers(tied.weight) == numbers(tok.weight))
local list = { nn.freeze(nn.linear(2, 2)), nn.linear(2, 2) }
assert(numbers(list[1].weight) ~= numbers(list[2].weight))
orrery.seed(7)
orrery.buffer({ 4 })
local first = nn.linear(2, 2)
orrery.seed(7)
assert(numbers(first.weight) == numbers(nn.linear(2, 2).weight))
