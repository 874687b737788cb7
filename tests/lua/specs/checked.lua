-- SPDX-License-Identifier: Apache-2.0
--
-- What functions of the library refuse by what is written over them.
local orrery = require "orrery"
local nn = orrery.nn

local function refused(part, call, ...)
  local ok, why = pcall(call, ...)
  assert(not ok and why:find(part, 1, true), why)
end

refused("nn.gelu_exact: x is a table, expected a tensor", nn.gelu_exact, { 1 })
refused("nn.linear: inputs is 1.5, expected an integer", nn.linear, 1.5, 2)
refused("nn.linear: inputs is nil, expected an integer", nn.linear)
refused("nn.linear: bias is 0, expected true or false", nn.linear, 1, 2, { bias = 0 })
refused("nn.linear: 4 arguments given, at most 3 expected", nn.linear, 1, 2, {}, "f64")
refused("nn.conv1d: stride is '2', expected an integer or a list", nn.conv1d, 1, 2, 3, { stride = "2" })
refused("nn.sequential: make is 3, expected a function", nn.sequential, 2, 3)
refused("nn.init.xavier: dims is 3, expected a list", nn.init.xavier, 3)
refused("orrery.einsum: equation is 3, expected a string", orrery.einsum, 3)
nn.linear(1, 2.0, { tie = false })
