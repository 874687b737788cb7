-- SPDX-License-Identifier: Apache-2.0
local optim = require "orrery".optim
local rule = optim.sgd { momentum = 0.9 }
--> option_unlike.lua:3: sgd: unknown option 'momentum'; it has decay, groups, lr
