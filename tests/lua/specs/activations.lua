-- SPDX-License-Identifier: Apache-2.0
--
-- Activations at their edges, with values and slopes by their formulas in double precision. Ordinary numbers are in
-- tests/golden.
local orrery = require "orrery"
local nn = orrery.nn

local function tanh(x)
  local e = math.exp(-2 * math.abs(x))
  return (x < 0 and -1 or 1) * (1 - e) / (1 + e)
end
local function sigmoid(x) return 1 / (1 + math.exp(-x)) end
-- log(1 + x) and exp(x) - 1 by their series, where these converge at once.
local function log1p(x) return math.abs(x) < 1e-4 and x - x * x / 2 + x ^ 3 / 3 or math.log(1 + x) end
local function expm1(x) return math.abs(x) < 1e-4 and x + x * x / 2 + x ^ 3 / 6 or math.exp(x) - 1 end
local function softplus(x) return math.max(x, 0) + log1p(math.exp(-math.abs(x))) end
local function at_least(x, y) return x > 0 and x or y end
local a, s = 1.6732632423543772, 1.0507009873554805
local function gate(x) return math.min(math.max(x + 3, 0), 6) / 6 end
local function inside(x, y) return math.abs(x) < 3 and y or 0 end

local functions = {
  softplus = { softplus, sigmoid },
  logsigmoid = { function(x) return -softplus(-x) end, function(x) return sigmoid(-x) end },
  elu = { function(x) return at_least(x, expm1(x)) end, function(x) return x > 0 and 1 or math.exp(x) end },
  selu = {
    function(x) return s * at_least(x, a * expm1(x)) end, function(x) return s * (x > 0 and 1 or a * math.exp(x)) end,
  },
  leaky_relu = { function(x) return at_least(x, 0.01 * x) end, function(x) return x > 0 and 1 or 0.01 end },
  hardsigmoid = { gate, function(x) return inside(x, 1 / 6) end },
  hardswish = {
    function(x) return x * gate(x) end, function(x) return x >= 3 and 1 or inside(x, (2 * x + 3) / 6) end,
  },
  mish = {
    function(x) return x * tanh(softplus(x)) end,
    function(x)
      local t = tanh(softplus(x))
      return t + x * sigmoid(x) * (1 - t * t)
    end,
  },
}

local at = { 0, 1e-6, -1e-6, 0.5, -0.5, -2.75, 3, -3, 7, -7, 30, 200, -200 }
for name, wanted in pairs(functions) do
  for _, dtype in ipairs { "f32", "f64" } do
    local measure = orrery.func(function(x)
      local y = nn[name](x)
      return y, orrery.grad(y:sum(), { x })[1]
    end)
    local found = { measure(orrery.tensor({ at }, dtype)) }
    for k, f in ipairs(wanted) do
      for i, y in ipairs(found[k]:tolist()[1]) do
        local x, value = at[i], f(at[i])
        local allowed = (dtype == "f32" and 1e-6 or 1e-9) * math.max(math.abs(value), name == "mish" and 1e-3 or 1e-12)
        assert(math.abs(y - value) <= allowed, ("%s %s of %g, %d: %.9g, expected %.9g"):format(dtype, name, x, k, y, value))
      end
    end
  end
end

-- A sum of exp that none holds, and a class that is ruled out.
local rows = orrery.func(function(x) return nn.log_softmax(x), nn.log_softmax(x:cast "bf16") end)
local found, half = rows(orrery.tensor({ { 500, 501, -math.huge } }, "f32"))
local first, second, third = table.unpack(found:tolist()[1])
assert(math.abs(first + softplus(1)) < 1e-6 and math.abs(second + softplus(-1)) < 1e-6 and third == -math.huge)
assert(half.dtype == "bf16")

local function refused(words, f)
  local ok, message = pcall(f)
  assert(not ok and message:find(words, 1, true), ("'%s', expected '%s'"):format(tostring(message), words))
end
local function of_row(f) return function() orrery.func(f)(orrery.tensor({ { 1, 2, 3 } }, "f32")) end end
refused("glu: dim -1 of [1,3] has no two halves", of_row(function(x) return nn.glu(x) end))
refused("glu: dim 3 of [1,3] has no two halves", of_row(function(x) return nn.glu(x, 3) end))
refused("softplus: beta = 0, expected a number above 0", of_row(function(x) return nn.softplus(x, { beta = 0 }) end))
refused("elu: unknown option 'beta'; it has alpha", of_row(function(x) return nn.elu(x, { beta = 2 }) end))
refused("prelu: x is [1,3], expected [batch, 4]", of_row(function(x) return nn.prelu(4)(x) end))
