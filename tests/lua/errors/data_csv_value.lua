-- SPDX-License-Identifier: Apache-2.0
local data = require "orrery".data
data.csv("../../data/files/table.csv", { x = "kind" })
--> data_csv_value.lua:3: ../../data/files/table.csv: line 2: column 'kind' has 'say "hi"', a number expected; correct it, or give dtypes: 'class' numbers texts, 'text' keeps them
