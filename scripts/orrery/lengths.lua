-- SPDX-License-Identifier: Apache-2.0
--
-- Sequences of several lengths in one batch, each filled up to the same time.
local _, orrery = ...
local M = {}

-- Fails unless `lengths` are integers, one for each sample of x [batch, ...].
function M.check(what, name, lengths, x)
  local dtype, shape = lengths.dtype, lengths.shape
  if not (dtype == "i32" or dtype == "i64") or #shape ~= 1 or shape[1] ~= x.shape[1] then
    orrery.fail(("%s: %s are %s%s, expected integers [%d], one for each sample"):format(
      what, name, dtype, tostring(shape), x.shape[1]))
  end
end

-- Of lengths [batch] whether a place of `time` is behind the end: booleans [batch, time]. A length that is none, one
-- below 0 or above the time, is an error of the step.
function M.ended(lengths, time)
  return lengths:one_hot(time + 1):cumsum(2):slice(2, 1, time):gt(0)
end

return M
