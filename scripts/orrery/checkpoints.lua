-- SPDX-License-Identifier: Apache-2.0
--
-- Which checkpoints a run saves and which it removes: Run:save and Run:checkpoints.
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

-- The paths of those that go when the one with this note is complete: all but the newest and the best, which has the
-- smallest value(its note).
local function superseded(o, note, value)
  if o.keep == 0 then return {} end
  local all, remove = {}, {}
  local best, smallest
  for _, one in ipairs(engine.checkpoints(o.dir)) do
    if not one.complete then
      remove[#remove + 1] = one.path
    else
      all[#all + 1] = one
      local of_one = value(one.extra)
      if of_one and (not smallest or of_one < smallest) then best, smallest = one, of_one end
    end
  end
  local new = value(note)
  if new and smallest and new < smallest then best = nil end
  for i = 1, #all - o.keep + 1 do
    if all[i] ~= best then remove[#remove + 1] = all[i].path end
  end
  return remove
end

local M = {}

local function check(o)
  if o.every < 1 then orrery.fail(("checkpoints: every is %d; give the steps between two, from 1"):format(o.every)) end
  if o.keep < 0 then orrery.fail(("checkpoints: keep is %d; give a number, or 0 for all"):format(o.keep)) end
  if o.dir == "" then orrery.fail "checkpoints: dir is empty; give the name of a directory" end
end

-- Begins the series of a run and continues from its newest checkpoint, if there is one: returns that one's note. `note`
-- is called with the result of a step when its checkpoint is saved, and returns what the checkpoint keeps in `extra`;
-- `value` of a note is the number by which the best is found, or nil. The second result is a function that has the step
-- that was taken last saved in any case.
function M.series(run, o, note, value)
  check(o)
  local save
  engine.begin_series(run, o.dir, function(this, result)
    local judged = result
    save = function()
      local text = note(judged)
      engine.finish_save(this) -- so that the last one is among those that are there
      engine.save_in_series(this, text, superseded(o, text, value))
    end
    between.after(this, save, this.steps % o.every == 0)
  end)
  local extra = ""
  for _, one in ipairs(engine.checkpoints(o.dir)) do
    if one.complete then
      extra = select(2, run:load(o.dir))
      break
    end
  end
  return extra, function()
    if save then between.after(run, save, true) end
  end
end

-- {extra =, wait =, format =}, as scripts may give them in the place of `extra`.
local function how_to_save(extra, wait)
  local given = type(extra) == "table" and extra or { extra = extra, wait = wait }
  local o = orrery.options("save", given, { extra = "", wait = wait, format = "" })
  for name, kind in pairs { extra = "string", wait = "boolean", format = "string" } do
    if type(o[name]) ~= kind then
      orrery.fail(("save: %s is %s, expected a %s"):format(name, engine.describe(o[name]), kind))
    end
  end
  return o
end

define([[Run:save(directory: string, extra: any = '', wait: boolean = true); Writes a checkpoint with this text into a
    directory, or to an address of a server; all ranks call it. With wait = false it is copied, and written while the next
    steps are taken; an error comes from a later step, save or finish_save, or at the end. In the place of the text,
    {extra = '', wait = true, format = ''} says the same; format = 'dcp' is that of torch.distributed.checkpoint.]],
function(run, directory, extra, wait)
  local o = how_to_save(extra, wait)
  engine.save(run, directory, o.extra, o.wait, o.format)
end)

define([[Run:checkpoints(options: options) -> integer; Saves a checkpoint while steps go on, and continues from the
    newest one that is there already: returns the steps done. A directory that cannot be written, or that another process
    saves to, is an error at once; one in writing comes from a later step.
    @option dir: string; gets a directory step-N for each
    @option every: integer; steps between two
    @option keep: integer = 2; how many of the newest stay; 0: all
    @option best: string = ''; a result of the step, such as 'loss': the checkpoint with the smallest one stays, too]],
function(run, o)
  M.series(run, o, function(result) return note_of(o.best, result) end,
    function(note) return value_in(note, o.best) end)
  return run.steps
end)

return M
