-- SPDX-License-Identifier: Apache-2.0
local nn = require "orrery".nn
local table = nn.embedding(10, 4)
local head = nn.linear(4, 11, { tie = table.weight })
--> tie.lua:4: linear: the tied weight is [10,4], this layer needs [11,4]
