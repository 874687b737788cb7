-- SPDX-License-Identifier: Apache-2.0
local data = require "orrery".data
data.csv("../../data/files/table.csv", { x = "a" }, { dtypes = { z = "i32" } })
--> data_csv_dtype.lua:3: csv: dtypes: unknown option 'z'
