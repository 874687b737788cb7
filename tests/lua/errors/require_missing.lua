-- SPDX-License-Identifier: Apache-2.0
local m = require "nothing.here"
--> require_missing.lua:2: require: there is no module 'nothing.here'; tried ./nothing/here.lua, ./nothing/here/init.lua
