-- SPDX-License-Identifier: Apache-2.0
--
-- The layers over spatial dims on numbers that make.py makes in the same way; a line for each case of make.py's list:
-- its name, and for the result and each gradient the sum of squares and the product with a pattern.
local orrery = require "orrery"
local nn = orrery.nn
local cases = require "layer_cases"

-- Numbers without a pattern that small shapes could hide: sin(1 + seed + i * 1.7) * scale + shift for i = 0, 1, ...
local function numbers(dims, seed, scale, shift)
  local at = -1
  local function nested(level)
    local list = {}
    for i = 1, dims[level] do
      if level == #dims then
        at = at + 1
        list[i] = math.sin(1 + seed + at * 1.7) * scale + shift
      else
        list[i] = nested(level + 1)
      end
    end
    return list
  end
  return orrery.tensor(nested(1), "f32")
end

local function measures(values, pattern) return values:sumsq(), (values * pattern):sum() end

for _, case in ipairs(cases) do
  local name, layer, dims = case[1], case[2](nn), case[3]
  local states = orrery.type(layer) == "Module" and orrery.parameters(layer) or {}
  for i, state in ipairs(states) do state:write(numbers(state.shape, 10 * i, 0.5, 0)) end
  local measure = orrery.func(function(x, ...)
    local y = layer(x)
    local patterns, found = { ... }, {}
    local wanted = { x, table.unpack(states) }
    local loss = (y * patterns[1]):sum()
    for i, gradient in ipairs(orrery.grad(loss, wanted)) do
      found[2 * i + 1], found[2 * i + 2] = measures(gradient, patterns[i + 1])
    end
    found[1], found[2] = measures(y, patterns[1])
    return table.unpack(found)
  end)
  local given = { numbers(case[4], 5, 1, 0), numbers(dims, 6, 1, 0) }
  for i, state in ipairs(states) do given[2 + i] = numbers(state.shape, 6 + i, 1, 0) end
  local line = { name }
  for _, figure in ipairs { measure(numbers(dims, 0, 2, 0.25), table.unpack(given)) } do
    line[#line + 1] = ("%.9g"):format(figure:item())
  end
  orrery.log("%s", table.concat(line, " "))
end
