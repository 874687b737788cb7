-- SPDX-License-Identifier: Apache-2.0
--
-- Functions of nn without their tensor are layers, with the options that they get: the same numbers, and errors at once.
local orrery = require "orrery"
local nn = orrery.nn

local x = orrery.tensor({ { -1.5, 0.25, 2 }, { 3, -0.5, -7 } }, "f32")
local function same(made, wanted)
  local layer = nn.sequential { nn.identity(), made }
  local found, numbers = orrery.func(function(t) return layer(t), wanted(t) end)(x)
  found, numbers = found:tolist(), numbers:tolist()
  for i, row in ipairs(numbers) do
    for j, number in ipairs(row) do assert(found[i][j] == number, ("%g, expected %g"):format(found[i][j], number)) end
  end
end

same(nn.relu(), function(t) return t:relu() end)
same(nn.leaky_relu(0.2), function(t) return orrery.where(t:gt(0), t, t * 0.2) end)
same(nn.leaky_relu { slope = 0.2 }, function(t) return nn.leaky_relu(t, 0.2) end)
same(nn.leaky_relu(), function(t) return nn.leaky_relu(t, { slope = 0.01 }) end)
same(nn.elu(2), function(t) return nn.elu(t, { alpha = 2 }) end)
same(nn.softplus(3), function(t) return nn.softplus(t, { beta = 3 }) end)
same(nn.softmax { dim = 1 }, function(t) return t:transpose():softmax():transpose() end)
same(nn.softmax(-1), function(t) return t:softmax() end)
same(nn.log_softmax(1), function(t) return nn.log_softmax(t:transpose()):transpose() end)
same(nn.gelu "tanh", function(t) return t:gelu() end)
same(nn.gelu "none", function(t) return nn.gelu_exact(t) end)
same(nn.normalize { dim = 1 }, function(t) return t / t:sumsq(1, { keep = true }):sqrt() end)
same(nn.glu(1), function(t) return nn.glu(t, 1) end)

-- On a HostTensor at once.
assert(nn.leaky_relu(0.5)(x):tolist()[1][1] == -0.75 and nn.sequential { nn.leaky_relu(0.5) }(x):tolist()[1][1] == -0.75)

local function refused(words, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and message:find(words, 1, true), ("'%s', expected '%s'"):format(tostring(message), words))
end
refused("elu: unknown option 'beta'; it has alpha", nn.elu, { beta = 2 })
refused("nn.elu: alpha is 'two', expected a number", nn.elu, "two")
refused("nn.leaky_relu: slope is a table, expected a number", nn.leaky_relu, { slope = {} })
refused("nn.leaky_relu: 2 arguments given, at most 1 expected", nn.leaky_relu, 0.2, { slope = 1 })
refused("nn.relu: x is 0.2, expected a tensor", nn.relu, 0.2)
refused("nn.relu: x is nil, expected a tensor", nn.relu, nil)
refused("nn.leaky_relu: x is nil, expected a tensor", nn.leaky_relu, nil)
refused("nn.leaky_relu: x is a boolean, expected a tensor", nn.leaky_relu, true)
refused("nn.leaky_relu: x is nil, expected a tensor", nn.leaky_relu(0.2))
refused("nn.leaky_relu: 2 arguments given, at most 1 expected", nn.leaky_relu(0.2), x, 3)
refused('gelu: approximate = "erf": give "tanh" or "none"', nn.gelu "erf", x)
refused("nn.mse: x is nil", nn.mse)
refused("nn.glu: dim is 'last', expected an integer", nn.glu, "last")
refused("dim 3 does not exist", nn.softmax(3), x)
