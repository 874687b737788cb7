-- SPDX-License-Identifier: Apache-2.0
--
--- optim.chained(schedules)
--- The product of schedules that go on at the same time, of which all but one have a peak of 1. For one after another there
--- is optim.sequential.
---@param schedules orrery.Schedule[]
---@return orrery.Schedule
local _, orrery = ...
local is_callable = require "orrery.callable"

return function(schedules)
  if #schedules == 0 then orrery.fail "chained: give at least one schedule" end
  for i, schedule in ipairs(schedules) do
    if not is_callable(schedule) then
      orrery.fail(("chained: schedule %d is %s, expected a function of the step"):format(i, orrery.type(schedule)))
    end
  end
  return function(step)
    local rate = 1
    for _, schedule in ipairs(schedules) do rate = rate * schedule(step) end
    return rate
  end
end
