-- SPDX-License-Identifier: Apache-2.0
local args = require "orrery".args { steps = 3, lr = 1, name = "x", flag = true, mode = { "a", "b" } }
assert(args.steps == 3 and args.name == "x" and args.flag == true and args.mode == "a")
local ok, message = pcall(function() return args.stesp end)
assert(not ok and message:find("did you mean 'steps'", 1, true), message)
