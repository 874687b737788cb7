-- SPDX-License-Identifier: Apache-2.0
local optim = require "orrery".optim
local o = optim.adammw {}
--> optimizer.lua:3: there is no optimizer or schedule optim 'adammw' (did you mean 'adamw'?)
