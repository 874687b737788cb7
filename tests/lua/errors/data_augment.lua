-- SPDX-License-Identifier: Apache-2.0
local data = require "orrery".data
data.arrays { x = { 1, 2 } }:augment { flip = true }
--> data_augment.lua:3: augment: 'x' is i64[]: images are [C,H,W]
