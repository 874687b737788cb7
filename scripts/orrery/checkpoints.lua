-- SPDX-License-Identifier: Apache-2.0
--
-- Which checkpoints a run saves and which it removes: Run:checkpoints.
local _, orrery = ...
local engine = orrery.engine

local between, define = require "orrery.between", require "orrery.define"

-- The result that `best` names, as a checkpoint keeps it in its `extra`: "loss=2.5".
local function note_of(best, result)
  return best == "" and "" or ("%s=%.17g"):format(best, result:get(best))
end

local function value_in(extra, best)
  local name, value = extra:match "^(.*)=(%S+)$"
  return name == best and tonumber(value) or nil
end

-- The paths of those that go when the one with this note is complete: all but the newest and the best.
local function superseded(o, note)
  if o.keep == 0 then return {} end
  local all, remove = {}, {}
  local best, smallest
  for _, one in ipairs(engine.checkpoints(o.dir)) do
    if not one.complete then
      remove[#remove + 1] = one.path
    else
      all[#all + 1] = one
      local value = value_in(one.extra, o.best)
      if value and (not smallest or value < smallest) then best, smallest = one, value end
    end
  end
  local new = value_in(note, o.best)
  if new and smallest and new < smallest then best = nil end
  for i = 1, #all - o.keep + 1 do
    if all[i] ~= best then remove[#remove + 1] = all[i].path end
  end
  return remove
end

define([[Run:checkpoints(options: options) -> integer; Saves a checkpoint while steps go on, and continues from the
    newest one that is there already: returns the steps done. A directory that cannot be written, or that another process
    saves to, is an error at once; one in writing comes from a later step.
    @option dir: string; gets a directory step-N for each
    @option every: integer; steps between two
    @option keep: integer = 2; how many of the newest stay; 0: all
    @option best: string = ''; a result of the step, such as 'loss': the checkpoint with the smallest one stays, too]],
function(run, o)
  if o.every < 1 then orrery.fail(("checkpoints: every is %d; give the steps between two, from 1"):format(o.every)) end
  if o.keep < 0 then orrery.fail(("checkpoints: keep is %d; give a number, or 0 for all"):format(o.keep)) end
  if o.dir == "" then orrery.fail "checkpoints: dir is empty; give the name of a directory" end
  engine.begin_series(run, o.dir, function(this, result)
    local judged = o.best ~= "" and result or nil
    between.after(this, function()
      local note = note_of(o.best, judged)
      engine.finish_save(this) -- so that the last one is among those that are there
      engine.save_in_series(this, note, superseded(o, note))
    end, this.steps % o.every == 0)
  end)
  for _, one in ipairs(engine.checkpoints(o.dir)) do
    if one.complete then run:load(o.dir) break end
  end
  return run.steps
end)
