-- SPDX-License-Identifier: Apache-2.0
require "orrery".data.arrays { x = { 1, 2, 3 }, y = { 1, 2 } }
--> data_uneven.lua:2: arrays: 'x' has 3 samples and 'y' has 2
