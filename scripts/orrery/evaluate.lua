-- SPDX-License-Identifier: Apache-2.0
--
-- Run:eval, of a batch or of a whole dataset.
local _, orrery = ...
local engine = orrery.engine
local define, pass_of_stream = require "orrery.define", require "orrery.stream".pass

-- A function that returns the batches of a pass, and nil at the end.
local function pass(data, size, limit)
  local kind = orrery.type(data)
  if kind == "Stream" then return pass_of_stream(data, size, limit) end
  local next_batch = engine.pass(data, size, limit)
  return function()
    local _, batch = next_batch()
    return batch
  end
end

local function check(o)
  if o.size == false then orrery.fail "eval: size is missing: how many samples of the dataset make a batch" end
  for _, name in ipairs { "size", "limit" } do
    local value = o[name]
    if value and (math.type(value) ~= "integer" or value < 1) then
      orrery.fail(("eval: %s is %s, expected an integer from 1"):format(name, engine.describe(value)))
    end
  end
  if o.name ~= "" then engine.check_metric_name(o.name) end
end

define([[Run:eval(data: any, options?) -> orrery.StepResult; Evaluates the loss and the loss function's results, without
    dropout and updates: of one batch, or, with size, of a dataset or a stream from its beginning to its end. Of a dataset
    they are those of one batch that holds all of it: each sample counts once, means are divided by what they are divided
    by in a batch (samples, labels that count), and results with a row for each sample have all rows. Where that cannot be
    (samples that read others of their batch), several batches are an error. All ranks call it.
    @option size: any = false; samples in a batch, over all ranks; changes nothing but rounding
    @option limit: any = false; so many samples at most; an endless stream needs it
    @option name: string = 'eval'; the numbers are recorded as eval/loss and so on, at the run's step; with '' they are not]],
  function(run, data, o)
    local kind = orrery.type(data)
    if kind ~= "Dataset" and kind ~= "Stream" then
      if o.size or o.limit then
        orrery.fail(("eval: size and limit are about a dataset, and %s is given: leave them out"):format(
          engine.describe(data)))
      end
      if type(data) ~= "table" then
        orrery.fail(("eval: %s given, expected a batch {field = tensor} or a dataset"):format(engine.describe(data)))
      end
      if o.name ~= "" then engine.check_metric_name(o.name) end
      return engine.evaluate(run, data, o.name)
    end
    check(o)
    return engine.evaluate_all(run, pass(data, o.size, o.limit or math.maxinteger), o.name)
  end)
