-- SPDX-License-Identifier: Apache-2.0
--
-- Functions that lose digits if they are written out: differences of numbers that are nearly equal, and exp of large
-- ones. Their gradients are their own for the same reason.
local _, orrery = ...
local gradient = require "orrery.nn.spatial".gradient
local M = {}

-- log(1 + x), also of an x that 1 + x does not show (Kahan). It has no gradient where it is used.
function M.log1p(x)
  local sum = x + 1
  local seen = sum - 1
  local none = seen:eq(0)
  return orrery.where(none, x, sum:log() * x / orrery.where(none, 1, seen))
end

-- exp(x) - 1.
M.expm1 = gradient {
  forward = function(x) return (x * 0.5):tanh() * (x:exp() + 1) end,
  backward = function(dy, _, x) return dy * x:exp() end,
}

-- log(1 + exp(x)).
M.softplus = gradient {
  forward = function(x) return x:relu() + M.log1p((-x:abs()):exp()) end,
  backward = function(dy, _, x) return dy * x:sigmoid() end,
}

-- x less the logarithm of the sum of exp(x) along the last dim.
function M.log_softmax(x)
  local below = x - x:max(-1, { keep = true }):stop_gradient()
  return below - below:exp():sum(-1, { keep = true }):log()
end

return M
