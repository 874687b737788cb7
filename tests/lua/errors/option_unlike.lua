-- SPDX-License-Identifier: Apache-2.0
local optim = require "orrery".optim
local rule = optim.sgd { colour = 0.9 }
--> option_unlike.lua:3: sgd: unknown option 'colour'; it has decay, groups, lr
