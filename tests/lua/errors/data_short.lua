-- SPDX-License-Identifier: Apache-2.0
require "orrery".data.text("abc", { ctx = 64, string = true })
--> data_short.lua:2: text: the text has 3 chars, ctx = 64 needs at least 65
