-- SPDX-License-Identifier: Apache-2.0
require "orrery".nn.linear(2, 3, 4)
--> options_no_table.lua:2: linear: options are 4, expected a table, such as { bias = ... }
