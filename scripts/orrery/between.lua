-- SPDX-License-Identifier: Apache-2.0
--
-- What is to be done between two steps, once the script has made its own changes: right before the next step of any of
-- its runs, or at its end.
local _, orrery = ...
local engine = orrery.engine

local due = {}
local between = {}

function between.add(work) due[#due + 1] = work end

-- What fails is not tried again; what was to follow it stays.
function between.run()
  while due[1] do table.remove(due, 1)() end
end

-- The run saves and the script ends, because of a signal.
function between.stop(run, signal)
  between.add(function() engine.stop(run, signal) end)
end

return between
