-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local f = orrery.func(function(x, y) return orrery.einsum("ij,jk->ik", x, y) end)
f({ { 1, 2, 3 } }, { { 1 }, { 2 } })
--> einsum_size.lua:3: einsum "ij,jk->ik": 'j' is 3 and 2
