-- SPDX-License-Identifier: Apache-2.0
--
-- How parameters begin. An initialiser is a table {kind, a, b}, or a function of the dims.
local init = {}

init.zeros = { kind = "constant", a = 0, b = 0 }
init.ones = { kind = "constant", a = 1, b = 0 }

function init.constant(value) return { kind = "constant", a = value, b = 0 } end

-- Uniform in [low, high).
function init.uniform(low, high) return { kind = "uniform", a = low, b = high } end

function init.normal(deviation, mean) return { kind = "normal", a = mean or 0, b = deviation } end

-- Uniform within 1/sqrt(inputs), for weights [out, in].
function init.fan_in(dims)
  local bound = 1 / math.sqrt(dims[#dims])
  return init.uniform(-bound, bound)
end

-- Glorot and Bengio's uniform, for weights [out, in].
function init.xavier(dims)
  local bound = math.sqrt(6 / (dims[1] + dims[#dims]))
  return init.uniform(-bound, bound)
end

-- He's normal for layers before a relu, for weights [out, in].
function init.kaiming(dims) return init.normal(math.sqrt(2 / dims[#dims])) end

-- The initialiser for these dims.
function init.resolve(given, dims)
  if type(given) == "function" then return given(dims) end
  return given
end

return init
