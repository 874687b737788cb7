-- SPDX-License-Identifier: Apache-2.0
--
-- What lamb and lars scale the step of a tensor by: one norm over another, or 1 where one of them is 0.
return function(over, under)
  return over:gt(0):logical_and(under:gt(0)):select(over / under, 1)
end
