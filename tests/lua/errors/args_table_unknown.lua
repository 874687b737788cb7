-- SPDX-License-Identifier: Apache-2.0
require "orrery".args { steps = 100, lr = 0.1 }
--! @files/unknown.lua
--= 2
--> files/unknown.lua:4: 'stpes' is unknown (did you mean 'steps'?); the script takes lr, steps
