-- SPDX-License-Identifier: Apache-2.0
-- Paths come from where parts are assigned; order is natural; sharing is seen.
local orrery = require "orrery"
local nn = orrery.nn
local Net = nn.module("Net", function(m, c)
  m.tok = nn.embedding(5, c.dim)
  m.blocks = nn.sequential(11, function() return nn.linear(c.dim, c.dim, { bias = false }) end)
  m.list = { nn.layernorm(c.dim), nn.layernorm(c.dim) }
  m.head = nn.linear(c.dim, 5, { bias = false, tie = m.tok.weight })
  return function(x) return x end
end)
local net = Net { dim = 3 }
local names = {}
for _, parameter in ipairs(orrery.parameters(net)) do names[#names + 1] = parameter.name end
local expected = {}
for i = 1, 11 do expected[i] = ("blocks.%d.weight"):format(i) end
for _, name in ipairs { "head.weight", "list.1.bias", "list.1.weight", "list.2.bias", "list.2.weight" } do
  expected[#expected + 1] = name
end
assert(table.concat(names, " ") == table.concat(expected, " "), table.concat(names, " "))

local tree = tostring(nn.sequential { nn.linear(2, 3), nn.relu, nn.linear(3, 1) })
assert(tree == [[
sequential: 13 parameters
  1  linear
    1.bias  f32[3]  3
    1.weight  f32[3,2]  6
  3  linear
    3.bias  f32[1]  1
    3.weight  f32[1,3]  3]], tree)

-- A table of modules gives its keys as first part of the paths.
local both = orrery.parameters { g = nn.linear(1, 1), d = nn.linear(1, 1) }
assert(both[1].name == "d.bias" and both[4].name == "g.weight")
nn.freeze(net.blocks)
assert(net.blocks[3].weight.frozen and not net.tok.weight.frozen)
