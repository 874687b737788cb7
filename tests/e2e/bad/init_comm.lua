-- SPDX-License-Identifier: Apache-2.0
local b = require "lib"
b.orrery.init { comm = "lcoal" } -- here
