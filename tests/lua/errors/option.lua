-- SPDX-License-Identifier: Apache-2.0
local nn = require "orrery".nn
local layer = nn.linear(2, 3, { bais = false })
--> option.lua:3: linear: unknown option 'bais' (did you mean 'bias'?)
