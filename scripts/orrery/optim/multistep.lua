-- SPDX-License-Identifier: Apache-2.0
--
--- optim.multistep(options)
--- A warm-up, then the peak, times gamma after each of some numbers of steps.
---@param options table
---@option peak number the rate after the warm-up
---@option warmup integer=0 steps in which the rate grows from 0
---@option at integer[] after so many steps, counted from the warm-up's end, ascending
---@option gamma number=0.1
---@return orrery.Schedule
local _, orrery = ...

local function rate(_, o, n)
  local passed = 0
  for _, step in ipairs(o.at) do passed = n >= step and passed + 1 or passed end
  return o.peak * o.gamma ^ passed
end

return orrery.optim.schedule("multistep", { peak = false, warmup = 0, at = {}, gamma = 0.1 }, rate, function(o)
  if #o.at == 0 then orrery.fail "multistep: at is missing: the numbers of steps after which the rate falls, as in {30, 80}" end
  for i = 2, #o.at do
    if o.at[i] < o.at[i - 1] then
      orrery.fail(("multistep: at has %g after %g, expected them ascending"):format(o.at[i], o.at[i - 1]))
    end
  end
end)
