-- SPDX-License-Identifier: Apache-2.0
local x = = 3
--> syntax.lua:2: unexpected symbol near '='
