-- SPDX-License-Identifier: Apache-2.0
require "orrery".args { steps = 100, lr = 0.1 }
--! stpes=4
--= 2
--> args_unknown.lua:2: argument 'stpes' is unknown (did you mean 'steps'?); the script takes lr, steps
