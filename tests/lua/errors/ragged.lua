-- SPDX-License-Identifier: Apache-2.0
require "orrery".tensor { { 1, 2 }, { 3 } }
--> ragged.lua:2: tensor: a list of 1 stands where the first of its level has 2
