-- SPDX-License-Identifier: Apache-2.0
local function model() return require "nothing.here" end
model()
--> tail_call_require.lua:2: require: there is no module 'nothing.here'; tried ./nothing/here.lua, ./nothing/here/init.lua
