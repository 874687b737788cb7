-- SPDX-License-Identifier: Apache-2.0
--
-- What optimizers of Adam's kind share: moments, their bias corrections, the direction of the step. Moments begin with zeros,
-- so that after n updates they are 1 - b^n of a mean. n counts what this parameter has taken: one that was frozen, or whose
-- step a loss scale has taken back, is behind the run.
local M = {}

M.options = { lr = 1e-3, b1 = 0.9, b2 = 0.999, eps = 1e-8, decay = 0 }
M.states = { "m", "v" }

-- c1 and c2 are the corrections of a parameter that has taken every step; r1 and r2 make those of the others.
function M.scalars(step, o)
  return {
    c1 = 1 / (1 - o.b1 ^ step), c2 = 1 / (1 - o.b2 ^ step),
    r1 = -0.5 * math.log(o.b1), r2 = -0.5 * math.log(o.b2), step = step,
  }
end

-- 1 / (1 - b^n), where 1 - b^n = tanh(n r) (1 + exp(-2 n r)) loses no digits in f32 where b^n is nearly 1.
local function correction(o, every_step, r)
  local x = o.count * r
  return o.count:eq(o.step):select(every_step, 1 / (x:tanh() * ((x * -2):exp() + 1)))
end

-- The new moments.
function M.moments(g, s, o) return s.m * o.b1 + g * (1 - o.b1), s.v * o.b2 + g * g * (1 - o.b2) end

-- What they are multiplied by to be means.
function M.first_correction(o) return correction(o, o.c1, o.r1) end
function M.second_correction(o) return correction(o, o.c2, o.r2) end

-- The direction of the step and the new moments.
function M.direction(g, s, o)
  local m, v = M.moments(g, s, o)
  local c1, c2 = M.first_correction(o), M.second_correction(o)
  return (m * c1) / ((v * c2):sqrt() + o.eps), { m = m, v = v }
end

-- The parameter and the gradient with decay: of the weights themselves if it is `decoupled`, else added to the gradient.
function M.decayed(p, g, o)
  if o.decay == 0 then return p, g end
  if o.decoupled then return p - p * o.lr * o.decay, g end
  return p, g + p * o.decay
end

return M
