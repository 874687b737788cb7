-- SPDX-License-Identifier: Apache-2.0
local Net = require "orrery".nn.module("Net", function() end)
Net()
--> no_forward.lua:3: Net: the constructor returned nil, expected its forward function
