-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local nn = orrery.nn

local function near(a, b) assert(math.abs(a - b) < 1e-5, ("%g, expected %g"):format(a, b)) end

-- Rounding has no gradient of its own; the straight-through estimator passes dy on.
local straight = orrery.gradient {
  forward = function(x) return x:round() end,
  backward = function(dy) return dy end,
}
-- A product that claims three times its gradient for the first operand and none for the second.
local biased = orrery.gradient {
  forward = function(a, b) return a * b end,
  backward = function(dy, y, a, b) return dy * b * 3 + y * 0 + a * 0, nil end,
}
local net = nn.linear(1, 1, { bias = false })
net.weight:write { { 1.7 } }
local batch = { x = { { 2.0 }, { 4.0 } } }

local _, g = orrery.value_and_grad(function(b) return straight(net(b.x)):mean() end, net)(batch)
near(g[1]:read():item(), 3)
_, g = orrery.value_and_grad(function(b) return biased(net(b.x), b.x):mean() end, net)(batch)
near(g[1]:read():item(), 3 * (2 * 2 + 4 * 4) / 2)

local wrong = orrery.gradient { forward = function(x) return x * 2 end, backward = function() end }
local ok, message = pcall(orrery.value_and_grad(function(b) return wrong(net(b.x)):mean() end, net), batch)
assert(not ok and tostring(message):find("1 gradients are wanted, the backward function returned 0: return one for each input, or nil", 1, true), message)
