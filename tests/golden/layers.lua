-- SPDX-License-Identifier: Apache-2.0
--
-- Layers, functions and losses on numbers that layer_cases.py makes in the same way; a line for each case: its name, and
-- for the result and each gradient the sum of squares and the product with a pattern.
local orrery = require "orrery"
local nn = orrery.nn
local cases = {}
for _, file in ipairs { "layer_cases", "loss_cases", "function_cases", "transformer_cases" } do
  for _, case in ipairs(require(file)) do cases[#cases + 1] = case end
end

-- nested lists of these dims with f(i) for i = 0, 1, ...
local function filled(dims, f)
  local at = -1
  local function nested(level)
    if level > #dims then
      at = at + 1
      return f(at)
    end
    local list = {}
    for i = 1, dims[level] do list[i] = nested(level + 1) end
    return list
  end
  return nested(1)
end

-- Numbers without a pattern that small shapes could hide.
local function numbers(dims, seed, scale, shift)
  return orrery.tensor(filled(dims, function(i) return math.sin(1 + seed + i * 1.7) * scale + shift end), "f32")
end

-- Further inputs {dims, kind, classes}: the i-th; whether it has a gradient.
local kinds = {
  real = function(dims, i) return numbers(dims, 20 + i, 2, 0.25), true end,
  unit = function(dims, i) return numbers(dims, 20 + i, 0.45, 0.5), true end,
  given = function(_, _, values) return orrery.tensor(values) end,
  weights = function(dims, i) return numbers(dims, 20 + i, 0.45, 0.5), false end,
  signs = function(dims) return orrery.tensor(filled(dims, function(i) return i % 3 == 0 and -1 or 1 end), "f32") end,
  classes = function(dims, _, n) return orrery.tensor(filled(dims, function(i) return (i * 7 + 3) % n end)) end,
}

local function measures(values, pattern) return values:sumsq(), (values * pattern):sum() end

for _, case in ipairs(cases) do
  local name, layer, dims = case[1], case[2](nn), case[3]
  local states = orrery.type(layer) == "Module" and orrery.parameters(layer) or {}
  for i, state in ipairs(states) do state:write(numbers(state.shape, 10 * i, 0.5, 0)) end
  local inputs, real, shapes = { numbers(dims, 0, 2, 0.25) }, { 1 }, { dims }
  for i, more in ipairs(case[5] or {}) do
    local input, has_gradient = kinds[more[2]](more[1], i, more[3])
    inputs[i + 1] = input
    if has_gradient then real[#real + 1], shapes[#shapes + 1] = i + 1, more[1] end
  end
  local given = table.move(inputs, 1, #inputs, 1, {})
  given[#given + 1] = numbers(case[4], 5, 1, 0)
  for i, shape in ipairs(shapes) do given[#given + 1] = numbers(shape, 5 + i, 1, 0) end
  for i, state in ipairs(states) do given[#given + 1] = numbers(state.shape, 5 + #shapes + i, 1, 0) end
  local measure = orrery.func(function(...)
    local all, found, wanted = { ... }, {}, {}
    local y = layer(table.unpack(all, 1, #inputs))
    local patterns = { table.unpack(all, #inputs + 1) }
    for i, at in ipairs(real) do wanted[i] = all[at] end
    table.move(states, 1, #states, #wanted + 1, wanted)
    found[1], found[2] = measures(y, patterns[1])
    for i, gradient in ipairs(orrery.grad((y * patterns[1]):sum(), wanted)) do
      found[2 * i + 1], found[2 * i + 2] = measures(gradient, patterns[i + 1])
    end
    return table.unpack(found)
  end)
  local line = { name }
  for _, figure in ipairs { measure(table.unpack(given)) } do line[#line + 1] = ("%.9g"):format(figure:item()) end
  orrery.log("%s", table.concat(line, " "))
end
