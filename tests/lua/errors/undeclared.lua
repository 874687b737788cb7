-- SPDX-License-Identifier: Apache-2.0
local x = 1
local modle = mdoel + x
--> undeclared.lua:3: undeclared variable 'mdoel'
