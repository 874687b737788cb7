-- SPDX-License-Identifier: Apache-2.0
require "orrery".args { steps = 100, lr = 0.1 }
--! @files/type.lua
--= 2
--> files/type.lua:2: lr=0.1: expected a number
