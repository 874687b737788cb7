-- SPDX-License-Identifier: Apache-2.0
require "orrery".data.text("abc", { ctx = 64, string = true })
--> data_short.lua:2: text: there are 3 tokens, windows of 64 need at least 65
