-- SPDX-License-Identifier: Apache-2.0
--
-- Values that a script records beside those that its steps tell: orrery.record, Run:record.
local _, orrery = ...
local engine = orrery.engine
local any_next = require "orrery.globals".next
local define = require "orrery.define"

local M = {}

local function step_of(name, options)
  local step = options.step
  if step and step < 0 then orrery.fail(("record: '%s': step is %d; steps count from 0"):format(name, step)) end
  return step or -1
end

-- A value, or each of a table as "name/key", in the order of keys. `run` is nil for what is the script's own.
function M.record(run, name, value, options)
  options = options or {}
  if name == "" then orrery.fail "record: the name is empty; give it one, such as \"accuracy\"" end
  local step, as = step_of(name, options), options.as or ""
  if type(value) ~= "table" then return engine.record(run, name, value, step, as) end
  local keys = {}
  for key in any_next, value do
    if type(key) ~= "string" then
      orrery.fail(("record: '%s' is a table with the key %s; write {name = value, ...}, or orrery.tensor of a list")
        :format(name, engine.describe(key)))
    end
    keys[#keys + 1] = key
  end
  if #keys == 0 then orrery.fail(("record: '%s' is an empty table; write {name = value, ...}"):format(name)) end
  table.sort(keys)
  for _, key in ipairs(keys) do engine.record(run, name .. "/" .. key, value[key], step, as) end
end

define([[orrery.record(name: string, value: any, options?); Records a value for those who watch the run: a number or a
    HostTensor of one element; a string as a text; a HostTensor [H,W], [C,H,W] or [N,C,H,W] of u8, or of reals from 0 to
    1, as an image (1, 3 or 4 channels C; N become tiles, 8 in a row). {key = value, ...} records each as "name/key".
    Ranks may all call it, or rank 0 alone: it is written once.
    @option step?: integer; left out: the steps of the run that was compiled, loaded or stepped last
    @option as?: string; 'number', 'text', 'image' or 'histogram', of all elements of a HostTensor; left out: by the value]],
function(name, value, options) M.record(nil, name, value, options) end)

define([[Run:record(name: string, value: any, options?); As orrery.record, among the records of this run, at its step.
    @option step?: integer; left out: the steps of the run
    @option as?: string; as of orrery.record]],
function(run, name, value, options) M.record(run, name, value, options) end)

return M
