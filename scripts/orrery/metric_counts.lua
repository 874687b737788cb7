-- SPDX-License-Identifier: Apache-2.0
--
-- What the metrics count. A metric is a function of sums over the batch, so that Run:eval gives that of a whole dataset.
local _, orrery = ...
local M = {}

-- What is predicted, of scores [..., classes] the class with the largest, of scores [...] whether they are above the
-- threshold; labels in which 0 stands for one that does not count; and which count, nil if all do.
function M.predicted(what, scores, labels, o)
  local more, rows = #scores.shape - #labels.shape, { table.unpack(scores.shape, 1, #labels.shape) }
  if not labels.dtype:find "^i" or more ~= 0 and more ~= 1 or table.concat(rows, ",") ~= table.concat(labels.shape, ",") then
    orrery.fail(("%s: scores are %s and labels %s%s: give integers [...] and scores [...] or [..., classes]"):format(
      what, tostring(scores.shape), labels.dtype, tostring(labels.shape)))
  end
  local counts = o.ignore and labels:ne(o.ignore) or nil
  if counts then labels = orrery.where(counts, labels, 0) end
  return more == 1 and scores:argmax() or scores:gt(o.threshold):cast(labels.dtype), labels, counts
end

local function weighed(x, counts) return counts and orrery.where(counts, x, 0) or x end

-- How many of these, 0 or 1, count.
function M.sum(x, counts) return weighed(x:cast "f32", counts):sum() end

-- By class: predicted rightly, predicted, there.
local function by_class(what, scores, labels, o)
  local predicted, known, counts = M.predicted(what, scores, labels, o)
  local classes = #scores.shape > #labels.shape and scores.shape[-1] or 2
  if counts then counts = counts:reshape { -1, 1 } end
  local p = weighed(predicted:reshape { -1 }:one_hot(classes, "f32"), counts)
  local t = weighed(known:reshape { -1 }:one_hot(classes, "f32"), counts)
  return (p * t):sum(1), p:sum(1), t:sum(1)
end

-- 0 where there is nothing to divide by.
local function ratio(x, y)
  local none = y:eq(0)
  return orrery.where(none, 0, x / orrery.where(none, 1, y))
end

local averages = { macro = true, micro = true, none = true }

-- A metric of each class, as score(right, predicted, there) divides: of class 1 alone where scores are [...], else as
-- `average` says.
function M.score(what, scores, labels, options, score)
  local o = orrery.options(what, options, { ignore = false, threshold = 0.5, average = "macro" })
  if not averages[o.average] then
    orrery.fail(("%s: average = %q: give \"macro\", \"micro\" or \"none\""):format(what, tostring(o.average)))
  end
  local right, predicted, there = by_class(what, scores, labels, o)
  if #scores.shape == #labels.shape then return ratio(score(right, predicted, there)):slice(1, 2, 2):reshape {} end
  if o.average == "micro" then return ratio(score(right:sum(), predicted:sum(), there:sum())) end
  local each = ratio(score(right, predicted, there))
  if o.average == "none" then return each end
  local used = (predicted + there):gt(0):cast "f32" -- a class that nobody has seen or predicted has no part in it
  return ratio((each * used):sum(), used:sum())
end

return M
