-- SPDX-License-Identifier: Apache-2.0
local nn = require "orrery".nn
local layer = nn.liner(2, 3)
--> layer.lua:3: there is no layer nn 'liner' (did you mean 'linear'?)
