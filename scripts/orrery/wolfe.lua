-- SPDX-License-Identifier: Apache-2.0
--
-- A line search for the strong Wolfe conditions: Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6, with
-- cubic interpolation, in the variant of minFunc that PyTorch's L-BFGS has, so that both take the same steps.
--
-- A point is a table {t =, f =, slope =}: how far along the direction, the loss there, and its derivative by t.
local M = {}

local SUFFICIENT, CURVATURE = 1e-4, 0.9

-- Where the cubic through two points has its minimum, within bounds, by default these points; else their middle.
local function cubic_minimum(a, b, low, high)
  low, high = low or math.min(a.t, b.t), high or math.max(a.t, b.t)
  local d = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
  local square = d * d - a.slope * b.slope
  if not (square >= 0) then return (low + high) / 2 end
  local root, left, right = math.sqrt(square), a, b
  if a.t > b.t then left, right = b, a end
  local at = right.t - (right.t - left.t) * ((right.slope + root - d) / (right.slope - left.slope + 2 * root))
  return math.min(math.max(at, low), high)
end

local function falls_too_little(point, start) return point.f > start.f + SUFFICIENT * point.t * start.slope end
local function is_flat(point, start) return math.abs(point.slope) <= -CURVATURE * start.slope end

-- Goes on from the first step until two points have a good one between them. Returns them, or a good one alone, and the
-- evaluations; at most `most` of them after the first.
local function bracket(evaluate, start, t, most)
  local before, now, count = start, evaluate(t, start), 0
  while count < most do
    if falls_too_little(now, start) or count > 1 and now.f >= before.f then return before, now, count end
    if is_flat(now, start) then return now, nil, count end
    if now.slope >= 0 then return before, now, count end
    local beyond = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10)
    before, now = now, evaluate(beyond, start, now)
    count = count + 1
  end
  return start, now, count
end

-- A point between two by interpolation, but not close to one of them twice in a row. `close`: whether the last one was.
local function between(low, high, close)
  local t, left, right = cubic_minimum(low, high), math.min(low.t, high.t), math.max(low.t, high.t)
  local margin = 0.1 * (right - left)
  if math.min(right - t, t - left) >= margin then return t, false end
  if not close and t < right and t > left then return t, true end
  return math.abs(t - right) < math.abs(t - left) and right - margin or left + margin, false
end

-- evaluate(t, ...) gives the point at t; the vectors of the further points are still needed. `start` is the point at 0, t
-- the first step, `most` the largest number of evaluations after the first, `size` the largest element of the direction.
-- Returns the best point found and the number of evaluations.
function M.search(evaluate, start, t, most, size, tolerance)
  local first, second, count = bracket(evaluate, start, t, most)
  local done, close = second == nil, false
  -- Both orders matter: cubic_minimum takes the points as they lie.
  local points = { first, second or first }
  local low = first.f <= points[2].f and 1 or 2
  while not done and count < most and math.abs(points[2].t - points[1].t) * size >= tolerance do
    t, close = between(points[1], points[2], close)
    local now, high = evaluate(t, points[1], points[2]), 3 - low
    count = count + 1
    if falls_too_little(now, start) or now.f >= points[low].f then
      points[high] = now
      low = points[1].f <= points[2].f and 1 or 2
    else
      if is_flat(now, start) then
        done = true
      elseif now.slope * (points[high].t - points[low].t) >= 0 then
        points[high] = points[low]
      end
      points[low] = now
    end
  end
  return points[low], count + 1
end

return M
