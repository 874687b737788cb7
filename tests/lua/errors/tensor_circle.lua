-- SPDX-License-Identifier: Apache-2.0
local circle = { 1 }
circle[1] = circle
require "orrery".tensor(circle)
--> tensor_circle.lua:4: tensor: the list is nested deeper than 8 levels, or contains itself
