-- SPDX-License-Identifier: Apache-2.0
--
-- What holds for every plan of a layout, before it is planned. `facts` are the answer to "facts" (core/plan/planner.h).
local M = {}

-- A rank holds at least this many bytes: the parameters and optimizer states are spread over so many ranks at most.
-- What is offloaded may be elsewhere, and other strategies of the stack may keep f32 values in 16 bits.
function M.bytes(l, facts, template)
  local zero = template.varied.zero
  if zero and zero.offload and zero.offload ~= "none" then return 0 end
  local cut = l.tensor * l.pipe * l.expert * template.fixed
  local all = facts.parameter_bytes / (l.zero == 3 and cut * l.data or cut)
    + facts.state_bytes / (l.zero > 0 and cut * l.data or cut)
  return #template.rest > 0 and all / 2 or all
end

-- A step takes at least this long: the model's products at the highest rate, spread evenly. In a pipeline whose stages
-- run whole microbatches (1f1b), a stage also waits for the stages before it to run the first microbatch forward and
-- the last one backward. If stage s needs c(s) for a microbatch forward and backward, the step takes at least
-- c(1) + ... + c(s-1) + m c(s) for every s. The c(s) that add up to C and make the largest of these least make all
-- equal, and then it is C / (1 - (1 - 1/m)^stages).
function M.seconds(l, facts)
  local all = facts.product_flops / facts.product_rate / facts.ranks
  if l.schedule ~= "1f1b" then return all end
  local m = l.each
  return all * l.pipe / m / (1 - (1 - 1 / m) ^ l.pipe)
end

return M
