-- SPDX-License-Identifier: Apache-2.0
-- A script's own module, strict as the script itself, loaded once.
local helper = require "lib.helper"
assert(helper.twice(4) == 8 and require "lib.helper" == helper)
local ok, message = pcall(helper.broken)
assert(not ok and message:find("undeclared variable 'nowhere'", 1, true), message)
