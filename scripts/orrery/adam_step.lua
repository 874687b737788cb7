-- SPDX-License-Identifier: Apache-2.0
--
-- What adam and adamw share: moments, their bias corrections (host numbers of the step), the step.
local M = {}

M.options = { lr = 1e-3, b1 = 0.9, b2 = 0.999, eps = 1e-8, decay = 0 }
M.states = { "m", "v" }

function M.scalars(step, o)
  return { c1 = 1 / (1 - o.b1 ^ step), c2 = 1 / (1 - o.b2 ^ step) }
end

-- The direction of the step and the new moments.
function M.direction(g, s, o)
  local m = s.m * o.b1 + g * (1 - o.b1)
  local v = s.v * o.b2 + g * g * (1 - o.b2)
  return (m * o.c1) / ((v * o.c2):sqrt() + o.eps), { m = m, v = v }
end

return M
