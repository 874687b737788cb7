-- SPDX-License-Identifier: Apache-2.0
local orrery = require "orrery"
local count = orrery.buffer {}
orrery.func(function(x)
  count:write(count:read():item() + 1)
  return x
end)(1.0)
--> write_in_trace.lua:5: State:write in a traced function would happen when that is traced, not in every step: use State:update
