-- SPDX-License-Identifier: Apache-2.0
--
-- Run:fit, a loop over the calls that scripts make in loops of their own: batches, step, eval and checkpoints. What it
-- has to remember is the list of its evaluations, which its checkpoints keep.
local _, orrery = ...
local engine = orrery.engine
local define, series = require "orrery.define", require "orrery.checkpoints".series
local history = require "orrery.fit_history"

local function is_data(value)
  local kind = orrery.type(value)
  return kind == "Dataset" or kind == "Stream"
end

local function refuse(format, ...) orrery.fail("fit: " .. format:format(...)) end

local remedies = {
  ["function"] = "; give the dataset itself, whose batches are made here",
  table = "; write orrery.data.arrays { x = ..., y = ... }",
}

local function check_is_data(name, value)
  if is_data(value) then return end
  local remedy = remedies[orrery.type(value)] or ""
  refuse("%s is %s, expected a dataset or a stream%s", name, engine.describe(value), remedy)
end

local function check_data(o)
  check_is_data("data", o.data)
  if o.eval then check_is_data("eval", o.eval) end
end

local function check_end(o)
  local epochs, steps = o.epochs or 0, o.steps or 0
  if not (o.epochs or o.steps) or epochs ~= 0 and steps ~= 0 then
    refuse "give epochs or steps, the end of the training, and not both"
  end
  if epochs ~= 0 and orrery.type(o.data) == "Stream" then refuse "a stream has no epochs: give steps" end
  for name, value in pairs { epochs = epochs, steps = steps } do
    if value < 0 then refuse("%s is %d, expected at least 0", name, value) end
  end
end

local function check_numbers(o)
  for _, name in ipairs { "every", "eval_size", "eval_limit", "patience" } do
    if o[name] < 0 then refuse("%s is %d, expected at least 1", name, o[name]) end
  end
  if (o.eval_size > 0 or o.eval_limit > 0) and not o.eval then
    refuse "eval_size and eval_limit are about evaluations: give eval, a dataset"
  end
  if type(o.log) ~= "boolean" and (math.type(o.log) ~= "integer" or o.log < 1) then
    refuse("log is %s, expected true, false or the steps between two lines", engine.describe(o.log))
  end
end

local function check_judge(o)
  local judged = o.best ~= "" or o.patience > 0
  if judged and not o.eval then refuse "best and patience are about evaluations: give eval, a dataset" end
  if o.every > 0 and not o.eval then refuse "every is the steps between two evaluations: give eval, a dataset" end
  if o.mode ~= "min" and o.mode ~= "max" then refuse("mode is '%s': write \"min\" or \"max\"", o.mode) end
  if o.mode == "max" and o.best == "" then refuse "mode is about best: name a result of the evaluation" end
  if o.eval and o.every == 0 and orrery.type(o.data) == "Stream" then
    refuse "a stream has no epochs: give every, the steps between two evaluations"
  end
end

local function hooks_of(o)
  local on = orrery.options("fit: on", o.on, { step = false, epoch = false })
  for name, call in pairs(on) do
    if call and type(call) ~= "function" then
      refuse("on.%s is %s, expected a function", name, engine.describe(call))
    end
  end
  return on
end

local function checkpoints_in(o)
  local c = orrery.options("fit: checkpoints", o.checkpoints, { dir = false, every = math.maxinteger, keep = 2 })
  for _, name in ipairs { "every", "keep" } do
    if math.type(c[name]) ~= "integer" then
      refuse("checkpoints.%s is %s, expected an integer", name, engine.describe(c[name]))
    end
  end
  if type(c.dir) ~= "string" then
    refuse("checkpoints.dir is %s, expected the name of a directory", c.dir and engine.describe(c.dir) or "missing")
  end
  if c.every == math.maxinteger and orrery.type(o.data) == "Stream" then
    refuse "a stream has no epochs: give checkpoints.every, the steps between two"
  end
  return c
end

-- A fit under way: run, options, on, past; result and epoch of the last step; whether its epoch is `open`, not known to
-- have ended; save(), which has the last step saved; `told`, the step of the last line.
local Fit = {}
Fit.__index = Fit

-- Begins the series of checkpoints, if there is one, and goes on where the newest is.
function Fit:begin()
  local o, past = self.o, self.past
  if not o.checkpoints then
    self.save = function() end
    return
  end
  local c = checkpoints_in(o)
  self.saves_epochs = c.every == math.maxinteger
  local text
  text, self.save = series(self.run, c, function() return past:text(self.run.steps, self.epoch, self.open) end,
    function(note) return past:cost_in(note) end)
  self.epoch, self.open = past:read(text)
  if text ~= "" and o.log then
    local epoch = self.epoch and (" in epoch %d"):format(self.epoch) or ""
    orrery.log("%s: going on after step %d%s", c.dir, self.run.steps, epoch)
  end
end

-- Adds " PREFIXname value" to `words` for each number, the loss first and the others by name.
local function put_numbers(words, prefix, numbers)
  local function put(name, value)
    local shape = value ~= 0 and math.abs(value) < 1e-2 and " %s%s %.3e" or " %s%s %.4f"
    words[#words + 1] = shape:format(prefix, name, value)
  end
  if numbers.loss then put("loss", numbers.loss) end
  for name, value in pairs(numbers) do
    if name ~= "loss" then put(name, value) end
  end
end

-- The numbers of a step that an evaluation has, too.
local function evaluated(result)
  local numbers = history.numbers_of(result)
  numbers.grad_norm = nil
  return numbers
end

-- A line about the last step, and about an evaluation after it if there is one.
function Fit:tell(entry, best)
  local epoch = self.epoch
  self.told = self.run.steps
  if not self.o.log then return end
  local words = { epoch and ("epoch %d, "):format(epoch) or "", ("step %d:"):format(self.told) }
  if self.result then
    put_numbers(words, "", evaluated(self.result))
  end
  if entry then put_numbers(words, "eval/", entry.results) end
  if best then words[#words + 1] = ", the best so far" end
  orrery.log("%s", table.concat(words))
end

-- With `log` a number the line of each so many steps, and always that of the last, unless an evaluation has told of it.
-- It is told when the next step comes, because the evaluation at the end of an epoch is not known before.
function Fit:tell_step(is_last)
  local every, step = self.o.log, self.run.steps
  local due = is_last or math.type(every) == "integer" and step % every == 0
  if due and self.told ~= step then self:tell() end
end

local function batches_of(run, o)
  local options = { size = o.size, from = run.steps + 1 }
  if (o.epochs or 0) > 0 then options.epochs = o.epochs else options.steps = o.steps or 0 end
  for _, name in ipairs { "shuffle", "order", "last", "workers" } do
    if o[name] ~= nil then options[name] = o[name] end
  end
  return o.data:batches(options)
end

function Fit:evaluate()
  local o, run, past = self.o, self.run, self.past
  if not o.eval or past:last_step() == run.steps then return end
  local limit = o.eval_limit > 0 and o.eval_limit or nil
  local result = run:eval(o.eval, { size = o.eval_size > 0 and o.eval_size or o.size, limit = limit })
  local entry, best = past:add(run.steps, self.epoch, result)
  self:tell(entry, best)
  if best then self.save() end
end

function Fit:end_epoch(is_last)
  local past, step = self.past, self.run.steps
  self.open = false
  if self.o.every == 0 or is_last then self:evaluate() end
  local entry = past:last_step() == step and past.entries[#past.entries] or nil
  local counts_epochs = (self.o.epochs or 0) > 0
  if counts_epochs and not entry and self.told ~= step then self:tell() end
  if self.saves_epochs then self.save() end
  if self.on.epoch then self.on.epoch(self.epoch, entry) end
end

-- The evaluation of this step, where one is due every so many steps.
function Fit:evaluate_step()
  local every, step = self.o.every, self.run.steps
  if every > 0 and step > 0 and step % every == 0 then self:evaluate() end
end

function Fit:train()
  if self.open then self:evaluate_step() end -- of a checkpoint that was saved before it
  for step, batch, epoch in batches_of(self.run, self.o) do
    if self.open and epoch ~= self.epoch then self:end_epoch() end
    if self.past:stops() then return end
    local first = not self.result
    if not first then self:tell_step() end
    self.result, self.epoch, self.open = self.run:step(batch), epoch, epoch ~= nil
    if first and self.o.eval then self.past:check(evaluated(self.result)) end
    if self.on.step then self.on.step(step, self.result, epoch) end
    self:evaluate_step()
    if self.past:stops() then return end
  end
end

-- After the last step.
function Fit:finish()
  if self.open then self:end_epoch(true) end
  if not self.result then return end
  self:evaluate()
  self:tell_step(true)
end

-- The best evaluation, and the path of its checkpoint if there is one.
local function best_of(past, o)
  local best = past.best
  if not best then return nil end
  local found = { step = best.step, epoch = best.epoch, value = best.results[past.judged] }
  for _, one in ipairs(o.checkpoints and engine.checkpoints(o.checkpoints.dir) or {}) do
    if one.complete and tonumber(one.path:match "step%-(%d+)$") == best.step then found.path = one.path end
  end
  return found
end

define([[Run:fit(options) -> table; Trains by a loop over batches, step, eval and checkpoints, and goes on where its
    newest checkpoint is. Returns {steps, epochs, stopped (whether patience ran out), best = {step, epoch, value, path of
    its checkpoint}, history = a list of evaluations {step, epoch, results = by name}}. All ranks call it.
    @option data: any; a dataset or a stream to train on
    @option size: integer; samples in a batch, over all ranks
    @option epochs?: integer; so many passes over the data in all, those before a checkpoint among them
    @option steps?: integer; instead of epochs: the last step
    @option shuffle: any = nil; of a dataset: false leaves the samples in their order
    @option order: any = nil; of a dataset: a function that lists the samples of an epoch, as Dataset:batches has it
    @option workers: any = nil; of a dataset: threads that read and decode a batch ahead, one if left out
    @option last: any = nil; with epochs: 'drop' leaves out what does not fill a batch at the end of an epoch
    @option eval: any = false; a dataset or a stream that ends, which is evaluated
    @option every: integer = 0; steps between two evaluations; without it one at the end of each epoch, and with both
    one at the end
    @option eval_size: integer = 0; samples in a batch of the evaluation; as many as in one of the training if left out
    @option eval_limit: integer = 0; so many samples of eval at most; an endless stream needs it
    @option best: string = ''; the result of the evaluation that tells which is the best, 'loss' if left out
    @option mode: string = 'min'; 'max': the largest one is the best
    @option patience: integer = 0; training ends after so many evaluations, one after another, of which none was the
    best; without it it does not
    @option checkpoints: any = false; {dir =, every =, keep = 2} as Run:checkpoints has them; without every one is
    saved at the end of each epoch; the one of the best evaluation stays, too
    @option on: table = {}; functions: step(step, result, epoch) after each step, epoch(epoch, evaluation) after each
    epoch, with the entry of history that was made at its end
    @option log: any = true; a line for each evaluation, the last step, and with epochs each of them, with the loss and
    its results; a number: also every so many steps; false: none]],
  function(run, o)
    check_data(o)
    check_end(o)
    check_numbers(o)
    check_judge(o)
    local past = history.new(o.best == "" and "loss" or o.best, o.mode, o.patience)
    local fit = setmetatable({ run = run, o = o, on = hooks_of(o), past = past }, Fit)
    fit:begin()
    if not past:stops() then fit:train() end
    if not past:stops() then fit:finish() end
    if fit.result then fit.save() end
    if o.log and not fit.result then
      orrery.log("nothing is left to train after step %d%s", run.steps, past:stops() and ": patience has run out" or "")
    end
    run:finish_save()
    return {
      steps = run.steps, epochs = fit.epoch, stopped = past:stops(), history = past.entries, best = best_of(past, o),
    }
  end)
