-- SPDX-License-Identifier: Apache-2.0
-- orrery.digest is of everything that it is given.
local orrery = require "orrery"
local nn = orrery.nn
local a, b = orrery.buffer { 2 }, orrery.buffer { 2 }
local empty = orrery.digest { a }
assert(empty == orrery.digest(a) and empty == orrery.digest { b })
b:write { 1.0, 2.0 }
assert(orrery.digest { b } ~= empty and orrery.digest(b) ~= empty)
assert(orrery.digest { a, b } ~= orrery.digest { b, a })
local net = nn.module("net", function(m)
  m.fc = nn.linear(1, 1)
  m.seen = a
  return function(x) return m.fc(x) end
end)()
local before = orrery.digest(net)
a:write { 3.0, 4.0 }
assert(orrery.digest(net) ~= before)

for _, none in ipairs { { 1 }, { {} }, { a:read() }, { net, "net" }, { net, { 2 } } } do
  assert(not pcall(orrery.digest, none))
end
