-- SPDX-License-Identifier: Apache-2.0
--
-- What a loss may read without training it: frozen parameters, those of another run, those that no
-- gradient reaches.
local orrery = require "orrery"
local nn, optim = orrery.nn, orrery.optim

local function layer() return nn.linear(2, 2) end

local net, other, frozen, target = layer(), layer(), nn.freeze(layer()), layer()
local batch = { x = { { 1.0, 2.0 } } }
local function run(loss, params)
  return orrery.compile(loss, { params = params, optimizer = optim.sgd { lr = 0.1 } })
end

run(function(b) return nn.mse(frozen(net(b.x)), b.x) end, net):step(batch)
run(function(b) return nn.mse(net(b.x), target(b.x):stop_gradient()) end, net):step(batch)

local first = run(function(b) return nn.mse(other(net(b.x)), b.x) end, net)
local second = run(function(b) return nn.mse(other(b.x), b.x) end, other)
first:step(batch)
second:step(batch)

-- Excluded by a group of the optimizer; and only evaluated.
local pair = { a = layer(), b = layer() }
orrery.compile(function(b) return nn.mse(pair.a(pair.b(b.x)), b.x) end, {
  params = pair, optimizer = optim.sgd { lr = 0.1, groups = { { match = "a.*", frozen = true } } },
}):step(batch)
local untouched = layer()
run(function(b) return nn.mse(untouched(net(b.x)), b.x) end, net):eval(batch)
