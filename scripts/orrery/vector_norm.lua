-- SPDX-License-Identifier: Apache-2.0
--
-- The p-norm of the vectors along a dim, by the plainest sums that it has. `least`: no norm is below this, so that one of
-- 0 has the gradient 0.

-- Sums to the power of 1 / p; 0 with the gradient 0 for a sum of 0, as `least` wants it: least ^ p may be 0 in f32.
local function root(sums, p, least)
  if not least then return sums:pow(1 / p) end
  local some = sums:gt(0)
  return some:select(some:select(sums, 1):pow(1 / p), 0):maximum(least)
end

return function(x, p, dim, keep, least)
  local o = { keep = keep }
  if p == 2 then
    local squares = x:sumsq(dim, o)
    return (least and squares:maximum(least ^ 2) or squares):sqrt()
  end
  local sizes = x:abs()
  if p ~= 1 and p ~= math.huge then return root(sizes:pow(p):sum(dim, o), p, least) end
  local size = p == 1 and sizes:sum(dim, o) or sizes:max(dim, o)
  return least and size:maximum(least) or size
end
