-- SPDX-License-Identifier: Apache-2.0
--
--- optim.sequential(schedules, steps)
--- One schedule after another: each has so many steps, which it counts from 1, and the last one all others.
---@param schedules orrery.Schedule[]
---@param steps integer[] one for each but the last
---@return orrery.Schedule
local _, orrery = ...
local is_callable = require "orrery.callable"

local function check(schedules, steps)
  if #schedules ~= #steps + 1 then
    orrery.fail(("sequential: %d schedules and %d numbers of steps, expected one for each schedule but the last"):format(
      #schedules, #steps))
  end
  for i, schedule in ipairs(schedules) do
    if not is_callable(schedule) then
      orrery.fail(("sequential: schedule %d is %s, expected a function of the step"):format(i, orrery.type(schedule)))
    end
  end
  for i, count in ipairs(steps) do
    if math.type(count) ~= "integer" or count < 1 then
      orrery.fail(("sequential: steps has %s at place %d, expected an integer of at least 1"):format(
        orrery.engine.describe(count), i))
    end
  end
end

return function(schedules, steps)
  check(schedules, steps)
  return function(step)
    for i, count in ipairs(steps) do
      if step <= count then return schedules[i](step) end
      step = step - count
    end
    return schedules[#schedules](step)
  end
end
