-- SPDX-License-Identifier: Apache-2.0
require "orrery".args { mode = { "fast", "exact" } }
--! mode=slow
--= 2
--> args_choice.lua:2: argument mode=slow: expected one of fast, exact
