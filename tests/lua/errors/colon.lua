-- SPDX-License-Identifier: Apache-2.0
local x = require "orrery".tensor { 1 }
x.tolist()
--> colon.lua:3: HostTensor:tolist: called on nil; call it with a colon, x:tolist(...)
