-- SPDX-License-Identifier: Apache-2.0
--
-- What is done between two steps of a script, once it has made its own changes there: right before the next step of any of
-- its runs, or at its end. A script that is told to stop ends when the run that has stepped first would step again, so that
-- all of its runs have taken the step in which a loop was told.
local _, orrery = ...
local engine = orrery.engine

local due = {}       -- runs that are to be saved in their series
local unsaved = {}   -- run -> the function that saves it in its series
local told = {}      -- the runs that were told to stop, in the order of their steps
local first = setmetatable({}, { __mode = "v" }) -- the run that has stepped first
local between = {}

-- After a step of a run whose checkpoints are a series: `save` is called if `now`, or if the script stops there.
function between.after(run, save, now)
  unsaved[run] = save
  if now then due[#due + 1] = run end
end

local function save_in_series(run)
  local save = unsaved[run]
  unsaved[run] = nil
  if save then save() end
end

-- What fails is not tried again; what was to follow it stays.
function between.save()
  while due[1] do save_in_series(table.remove(due, 1)) end
end

function between.stop(run, signal)
  told[#told + 1], told.signal = run, signal
end

local function was_told(run)
  for _, one in ipairs(told) do
    if one == run then return true end
  end
  return false
end

-- Before a step of `run`; nil: at the end of the script.
function between.next(run)
  between.save()
  first[1] = first[1] or run
  local last = run or told[1]
  if not told[1] or not (last == first[1] or was_told(last)) then return end
  for _, one in ipairs(told) do
    save_in_series(one)
    if one ~= last then engine.save_to_stop(one, false) end
  end
  save_in_series(last)
  engine.save_to_stop(last, true)
  engine.stop(last, told.signal)
end

return between
