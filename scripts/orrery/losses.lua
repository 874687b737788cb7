-- SPDX-License-Identifier: Apache-2.0
--
-- What the losses of nn share: their option `reduction`, and what they demand of their tensors. Losses of 16 bits are
-- computed in f32 and stay so, as those of orrery.cross_entropy.
local _, orrery = ...
local M = {}

local reductions = {
  mean = function(each) return each:mean() end,
  sum = function(each) return each:sum() end,
  none = function(each) return each end,
}

-- The options of a loss: `defaults`, and `reduction`. `more`: a further reduction that this loss has.
function M.options(what, given, defaults, more)
  defaults.reduction = "mean"
  local o = orrery.options(what, given, defaults)
  if not reductions[o.reduction] and (not more or o.reduction ~= more) then
    orrery.fail(("%s: reduction = %q: give \"mean\", \"sum\"%s or \"none\""):format(
      what, tostring(o.reduction), more and (", %q"):format(more) or ""))
  end
  return o
end

-- Fails if an option is less than `least`, or is that where it must be more.
function M.at_least(what, name, value, least, more)
  if value < least or more and value == least or value ~= value then
    orrery.fail(("%s: %s = %g, expected a number %s %g"):format(what, name, value, more and "above" or "of at least", least))
  end
end

function M.wide(x) return orrery.type(x) ~= "number" and x.dtype:find "16" and x:cast "f32" or x end

-- Fails unless y is a number or has the shape of x: [n, 1] beside [n] would make all pairs.
function M.alike(what, x, y, names)
  if type(y) == "number" or orrery.type(y) == "Scalar" or tostring(x.shape) == tostring(y.shape) then return end
  orrery.fail(("%s: %s are %s and %s: give tensors of one shape"):format(
    what, names or "x and y", tostring(x.shape), tostring(y.shape)))
end

function M.reduced(each, reduction) return reductions[reduction](each) end

-- What is weighed with 0 does not count, also where it is infinite.
function M.times(each, weights) return orrery.where(weights:ne(0), each * weights, 0) end

-- Where the elements have weights, of which some may be 0: the mean is over the weights, or over `divisors`.
function M.weighted(what, each, weights, reduction, divisors)
  M.alike(what, each, weights, "the losses and the weights")
  weights = weights:cast(each.dtype)
  each = M.times(each, weights)
  if reduction == "mean" then return each:sum() / (divisors or weights):sum() end
  return M.reduced(each, reduction)
end

-- The option `class_weights` of a loss of numbers [..., classes] as a tensor in their dtype; nil if it is not given.
function M.class_weights(what, numbers, weights)
  if not weights then return nil end
  if orrery.type(weights) == "table" then weights = orrery.tensor(weights, "f32") end
  local count, shape = numbers.shape[-1], weights.shape
  if #shape ~= 1 or shape[1] ~= count then
    orrery.fail(("%s: class_weights is %s, expected %d numbers, one for each class"):format(what, tostring(shape), count))
  end
  return orrery.ones({ count }, numbers.dtype) * weights
end

-- Of numbers [..., classes] those of the labels [...]. A label outside of them is an error.
function M.of_labels(numbers, labels)
  local hit = labels:one_hot(numbers.shape[-1], numbers.dtype):gt(0)
  return orrery.where(hit, numbers, 0):sum(-1)
end

local function check_labels(what, numbers, labels)
  local rows = table.concat({ table.unpack(numbers.shape, 1, #numbers.shape - 1) }, ",")
  if not labels.dtype:find "^i" or table.concat(labels.shape, ",") ~= rows then
    orrery.fail(("%s: labels are %s%s, expected integers [%s]"):format(what, labels.dtype, tostring(labels.shape), rows))
  end
end

-- The loss of numbers [..., classes] at labels [...], of options `weights`, `class_weights`, `ignore` and `reduction`.
-- `each` makes the losses of both, weighed by classes if it gets their weights.
function M.at_labels(what, numbers, labels, o, each)
  check_labels(what, numbers, labels)
  local counts = o.ignore and labels:ne(o.ignore)
  if counts then labels = orrery.where(counts, labels, 0) end
  local of_classes = M.class_weights(what, numbers, o.class_weights)
  local found = each(numbers, labels, of_classes)
  local shares = of_classes and M.of_labels(of_classes, labels)
  local weights = o.weights or counts and counts:cast(found.dtype)
  if not weights then
    if shares and o.reduction == "mean" then return found:sum() / shares:sum() end
    return M.reduced(found, o.reduction)
  end
  if counts and o.weights then weights = orrery.where(counts, weights, 0) end
  return M.weighted(what, found, weights, o.reduction, shares and weights * shares)
end

return M
