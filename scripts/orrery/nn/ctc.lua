-- SPDX-License-Identifier: Apache-2.0
--
--- nn.ctc(x, labels, lengths, label_lengths, options)
--- Connectionist temporal classification: of logarithms of probabilities [batch, time, classes], as of nn.log_softmax,
--- minus the logarithm of the probability of the labels [batch, n], on any times, with blanks between them. The mean
--- divides each loss by the number of its labels. The recursion over time is written out in the program.
---@param x orrery.Tensor
---@param labels orrery.Tensor classes from 0, none of them the blank; what is behind a sequence's end does not count
---@param lengths orrery.Tensor integers [batch]: how many times of x a sample has
---@param label_lengths orrery.Tensor integers [batch]: how many labels
---@param options? table
---@option blank integer=0 the class that stands for no label
---@option zero_infinity boolean=false labels that do not fit into the time have no loss, instead of an infinite one
---@option reduction string='mean' mean, sum or none
---@return orrery.Tensor

-- Graves et al., 2006: the recursion of section 4.1 in logarithms, where `none` is that of 0.
local _, orrery = ...
local losses, within = require "orrery.losses", require "orrery.lengths"
local none = -1e30

-- The labels with blanks between and around them, [batch, 2 n + 1].
local function with_blanks(labels, blank)
  local batch, n = table.unpack(labels.shape)
  local pairs_of = labels:reshape(batch, n, 1):pad(3, 2, { before = 1, value = blank }):reshape(batch, 2 * n)
  return pairs_of:pad(2, 2 * n + 1, { value = blank })
end

-- What is `by` places earlier in the dim 2, and before the first one `value`.
local function earlier(x, by, value)
  local places = x.shape[2]
  if by >= places then return x * 0 + value end
  return x:slice(2, 1, places - by):pad(2, places, { before = by, value = value })
end

local function log_add(...)
  local terms = { ... }
  local most = terms[1]
  for i = 2, #terms do most = most:maximum(terms[i]) end
  most = most:stop_gradient()
  local sum
  for _, term in ipairs(terms) do
    local part = (term - most):exp()
    sum = sum and sum + part or part
  end
  return sum:log() + most
end

-- [batch]: the logarithm of the probability of the labels.
local function likelihood(x, labels, lengths, label_lengths, blank)
  local batch, time, classes = table.unpack(x.shape)
  local n = labels.shape[2]
  labels = orrery.where(within.ended(label_lengths, n), blank, labels)
  local path = with_blanks(labels, blank)
  local emitted = x:matmul(path:one_hot(classes, x.dtype), { transpose_b = true }) -- [batch, time, 2 n + 1]
  local ended = within.ended(lengths, time)
  local jumps = path:ne(blank):logical_and(path:ne(earlier(path, 2, blank)))
  local place = orrery.iota(2 * n + 1)
  local first = orrery.where(place:eq(0), 0, none) + emitted:slice(2, 1, 1):reshape(batch, 2 * n + 1) * 0
  local _, last = orrery.scan(function(state, now, t)
    local jumped = orrery.where(jumps, earlier(state, 2, none), none)
    local next_state = log_add(state, earlier(state, 1, none), jumped) + now
    next_state = orrery.where(ended:slice(2, t, t), state, next_state)
    return next_state, next_state
  end, first, emitted)
  local behind = place - label_lengths:reshape(batch, 1) * 2 -- 0: the last blank, -1: the last label
  return orrery.where(behind:eq(0):logical_or(behind:eq(-1)), last, none):logsumexp(2)
end

local function check(x, labels, lengths, label_lengths, blank)
  if #x.shape ~= 3 then orrery.fail(("ctc: x is %s, expected [batch, time, classes]"):format(tostring(x.shape))) end
  local dims = labels.shape
  if not labels.dtype:find "^i" or #dims ~= 2 or dims[1] ~= x.shape[1] then
    orrery.fail(("ctc: labels are %s%s, expected integers [%d, labels]"):format(labels.dtype, tostring(dims), x.shape[1]))
  end
  within.check("ctc", "lengths", lengths, x)
  within.check("ctc", "label_lengths", label_lengths, x)
  if math.type(blank) ~= "integer" or blank < 0 or blank >= x.shape[3] then
    orrery.fail(("ctc: blank = %s is not one of %d classes"):format(orrery.engine.describe(blank), x.shape[3]))
  end
end

return function(x, labels, lengths, label_lengths, options)
  local o = losses.options("ctc", options, { blank = 0, zero_infinity = false })
  check(x, labels, lengths, label_lengths, o.blank)
  -- Products with 0 have to be 0.
  local finite = losses.wide(x):maximum(none)
  local each = -likelihood(finite, labels, lengths, label_lengths, o.blank)
  each = orrery.where(each:gt(-0.1 * none), o.zero_infinity and 0 or math.huge, each)
  if o.reduction == "mean" then each = each / label_lengths:maximum(1):cast(each.dtype) end
  return losses.reduced(each, o.reduction)
end
