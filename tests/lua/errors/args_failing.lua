-- SPDX-License-Identifier: Apache-2.0
-- A misspelt argument may be why the script fails.
local args = require "orrery".args { data = "" }
assert(args.data ~= "", "give data=FILE")
--! dta=words.txt
--> args_failing.lua:4: give data=FILE
--> until there the script has declared no argument 'dta' (did you mean 'data'?)
