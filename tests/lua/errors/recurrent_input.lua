-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local net = orrery.nn.lstm(3, 4)
local f = orrery.func(function(x) return (net(x)) end)
f { { 1, 2, 3 } }
--> recurrent_input.lua:4: lstm: x is [1,3], expected [batch, time, 3]
