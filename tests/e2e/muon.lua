-- SPDX-License-Identifier: Apache-2.0
--
-- Muon on a list of matrices, as experts have, on the kernel of a convolution and on a matrix. Their gradients do not depend
-- on them. Prints the values of all after each step; muon_test.py has the same by the formula.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { stack = "strategy.data {}", adjust = "original", nesterov = true }

local function count(dims)
  local n = 1
  for _, dim in ipairs(dims) do n = n * dim end
  return n
end

local function filled(dims, phase)
  local list = {}
  for i = 1, count(dims) do list[i] = math.sin(0.7 * (i - 1) + phase) end
  return orrery.func(function(x) return x:reshape(table.unpack(dims)) end)(orrery.tensor(list, "f32"))
end

local Net = nn.module("net", function(m)
  m.experts = nn.parameter { 2, 3, 5 }
  m.conv = nn.conv2d(2, 4, 3, { bias = false })
  m.line = nn.conv1d(3, 5, 2, { bias = false })
  m.plain = nn.linear(4, 6, { bias = false })
  local parts = { m.experts, m.conv.weight, m.line.weight, m.plain.weight }
  local slopes = {}
  for i, p in ipairs(parts) do
    p:write(filled(p.shape, i))
    slopes[i] = filled(p.shape, 10 + i)
  end
  return function(batch)
    local sum
    for i, p in ipairs(parts) do
      local term = (p * slopes[i]):sum()
      sum = sum and sum + term or term
    end
    return (batch.x * sum):mean()
  end
end)

local net = Net()
local run = orrery.compile(net, {
  params = net, optimizer = optim.muon { lr = 0.1, decay = 0.1, adjust = args.adjust, nesterov = args.nesterov },
  microbatches = 2, strategy = load("local strategy = ...; return {" .. args.stack .. "}")(strategy),
})
local flat = orrery.func(function(x) return x:reshape(-1) end)
for step = 1, 3 do
  run:step { x = orrery.tensor({ step, 1, -0.5, 0.25 }, "f32") }
  for _, p in ipairs { net.experts, net.conv.weight, net.line.weight, net.plain.weight } do
    local numbers = flat(p:read()):tolist()
    for i, x in ipairs(numbers) do numbers[i] = ("%.9g"):format(x) end
    orrery.log("values %s", table.concat(numbers, " "))
  end
end
