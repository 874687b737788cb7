-- SPDX-License-Identifier: Apache-2.0
local data = require "orrery".data
data.cifar {}
--> data_no_files.lua:3: an empty list of names; give at least one
