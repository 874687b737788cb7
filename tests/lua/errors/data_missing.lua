-- SPDX-License-Identifier: Apache-2.0
require "orrery".data.text("nosuch.txt", { ctx = 3 })
--> data_missing.lua:2: nosuch.txt: cannot be read: No such file or directory
