-- SPDX-License-Identifier: Apache-2.0
--
-- How parameters begin. An initialiser is a table {kind, a, b}, or a function of the dims.
local _, orrery = ...
local init = {}

init.zeros = { kind = "constant", a = 0, b = 0 }
init.ones = { kind = "constant", a = 1, b = 0 }

--- nn.init.constant(value)
--- Every element the same.
---@param value number
---@return orrery.Initial
function init.constant(value) return { kind = "constant", a = value, b = 0 } end

--- nn.init.uniform(low, high)
--- Uniform in [low, high).
---@param low number
---@param high number
---@return orrery.Initial
function init.uniform(low, high) return { kind = "uniform", a = low, b = high } end

--- nn.init.normal(deviation, mean)
--- Normally distributed.
---@param deviation number
---@param mean? number=0
---@return orrery.Initial
function init.normal(deviation, mean) return { kind = "normal", a = mean or 0, b = deviation } end

-- Of weights [out, in] or, in a convolution, [out, in, size...]: so many channels at all places of the window.
local function fan(dims, channels)
  for i = 1, math.max(#dims, 1) do
    if type(dims[i]) ~= "number" or dims[i] % 1 ~= 0 or dims[i] < 1 then
      local shown = orrery.engine.describe(dims[i])
      orrery.fail(("nn.init: dim %d is %s, expected an integer of at least 1"):format(i, shown))
    end
  end
  for i = 3, #dims do channels = channels * dims[i] end
  return channels
end
local function inputs(dims) return fan(dims, dims[2] or dims[1]) end

--- nn.init.fan_in(dims)
--- Uniform within 1/sqrt(inputs), for weights [out, in] and [out, in, size...].
--- Layers take the function itself: {init = nn.init.fan_in}.
---@param dims integer[]
---@return orrery.Initial
function init.fan_in(dims)
  local bound = 1 / math.sqrt(inputs(dims))
  return init.uniform(-bound, bound)
end

--- nn.init.xavier(dims)
--- Glorot and Bengio's uniform, for weights [out, in] and [out, in, size...].
--- Layers take the function itself: {init = nn.init.xavier}.
---@param dims integer[]
---@return orrery.Initial
function init.xavier(dims)
  local bound = math.sqrt(6 / (fan(dims, dims[1]) + inputs(dims)))
  return init.uniform(-bound, bound)
end

--- nn.init.kaiming(dims)
--- He's normal for layers before a relu, for weights [out, in] and [out, in, size...].
--- Layers take the function itself: {init = nn.init.kaiming}.
---@param dims integer[]
---@return orrery.Initial
function init.kaiming(dims) return init.normal(math.sqrt(2 / inputs(dims))) end

--- nn.init.resolve(given, dims)
--- The initialiser for these dims, of one or of a function that makes one.
---@param given orrery.Initial|function
---@param dims integer|integer[]
---@return orrery.Initial
function init.resolve(given, dims)
  if type(given) == "function" then return given(type(dims) == "table" and dims or { dims }) end
  return given
end

local checked = require "orrery.checked"
for name, f in pairs(init) do
  if type(f) == "function" then init[name] = checked("nn.init", name, f, "nn/init") end
end
return init
