-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local args = orrery.args { steps = 3, lr = 1, name = "x", flag = true, mode = { "a", "b" } }
assert(args.steps == 3 and args.name == "x" and args.flag == true and args.mode == "a")
local ok, message = pcall(function() return args.stesp end)
assert(not ok and message:find("did you mean 'steps'", 1, true), message)

-- A second call adds its own; a function that declares may be called again.
local function model() return orrery.args { dim = { 8, help = "width" }, kind = { 1, 2, help = "which" } } end
assert(model().dim == 8 and model().kind == 1 and args.steps == 3)
ok, message = pcall(function() return args.dim end)
assert(not ok and message:find("declares no argument 'dim'", 1, true), message)

for wrong, says in pairs {
  ["args: 'a' has no default"] = { a = { help = "nothing" } },
  ["args: 'a' has a function"] = { a = print },
  ["args: 'a' has as help 3"] = { a = { 1, help = 3 } },
  ["args: 1 is no name"] = { "steps" },
} do
  ok, message = pcall(orrery.args, says)
  assert(not ok and message:find(wrong, 1, true), message)
end

-- arg and dofile as Lua has them; what they load is text, and has strict globals.
assert(arg[0] == "args.lua" and #arg == 0 and arg[1] == nil)
assert(dofile "lib/answer.lua" == 42 and loadfile "lib/answer.lua"() == 42)
assert(dofile((arg[0]:match "^.*/" or "") .. "lib/answer.lua") == 42)
local chunk, why = loadfile "lib/nowhere.lua"
assert(chunk == nil and why == "cannot open lib/nowhere.lua: No such file or directory", why)
ok, message = pcall(dofile, "lib/nowhere.lua")
assert(not ok and message:find("cannot open lib/nowhere.lua", 1, true), message)
