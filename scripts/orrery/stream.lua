-- SPDX-License-Identifier: Apache-2.0
--
-- Samples that a function of the script makes one after another. They have no numbers by which any could be read, so
-- every rank makes all of them, and a run that goes on makes those again that it has seen.
local _, orrery = ...
local engine = orrery.engine
local define = require "orrery.define"

local M = {}
local settings = setmetatable({}, { __mode = "k" }) -- stream -> {make, options}

-- A function that returns one sample after another, and nil at the end.
local function once(make)
  local step = make()
  if type(step) ~= "function" then
    orrery.fail(("data.from: the function returned %s, expected a function that returns the next sample"):format(
      orrery.type(step)))
  end
  return function()
    local sample = step()
    if sample ~= nil and type(sample) ~= "table" then
      orrery.fail(("data.from: a sample is %s, expected a table {field = value}"):format(orrery.type(sample)))
    end
    return sample
  end
end

-- The same without end.
local function endless(make)
  local next_sample
  return function()
    local sample = next_sample and next_sample()
    if sample then return sample end
    next_sample = once(make)
    return next_sample() or orrery.fail "data.from: the stream ends before its first sample"
  end
end

-- Out of `count` samples that wait, each time one is drawn and the next of the stream takes its place.
local function shuffled(next_sample, count, seed)
  local waiting, drawn = {}, 0
  return function()
    while #waiting < count do waiting[#waiting + 1] = next_sample() end
    local place = engine.draw(seed, drawn, count) + 1
    drawn = drawn + 1
    local sample = waiting[place]
    waiting[place] = next_sample()
    return sample
  end
end

-- The values of a field of a sample, as a list if it is one.
local function value_of(sample, field)
  local value = sample[field]
  if value == nil then orrery.fail(("data.from: a sample has no '%s', which the first one has"):format(field)) end
  return orrery.type(value) == "HostTensor" and #value.shape > 0 and value:tolist() or value
end

-- The length that a sample is filled up to: the next of `lengths`, or its own.
local function length_of(sample, pad, lengths)
  local longest = 0
  for field in pairs(pad) do
    local value = value_of(sample, field)
    if type(value) ~= "table" then
      orrery.fail(("data.from: '%s' is %s: only lists are filled up by pad"):format(field, orrery.type(value)))
    end
    longest = math.max(longest, #value)
  end
  if #lengths == 0 then return longest end
  for _, length in ipairs(lengths) do
    if longest <= length then return length end
  end
  orrery.fail(("data.from: a sample has the length %d, the largest of lengths is %d: leave it out or cut it"):format(
    longest, lengths[#lengths]))
end

local function filled(list, length, filler)
  local all = table.move(list, 1, #list, 1, {})
  for i = #list + 1, length do all[i] = filler end
  return all
end

-- Samples have the fields of the first one, of which dtypes tells.
local function check_fields(samples, o)
  for field in pairs(o.dtypes) do
    if samples[1][field] == nil then
      orrery.fail(("data.from: dtypes has '%s', which the first sample of a batch has not"):format(tostring(field)))
    end
  end
  for _, sample in ipairs(samples) do
    for field in pairs(sample) do
      if samples[1][field] == nil then
        orrery.fail(("data.from: a sample has '%s', which the first one of its batch has not"):format(tostring(field)))
      end
    end
  end
end

-- {field = tensor} of samples.
local function stacked(samples, o)
  check_fields(samples, o)
  local batch, length = {}, 0
  for _, sample in ipairs(samples) do length = math.max(length, length_of(sample, o.pad, o.lengths)) end
  for field, first in pairs(samples[1]) do
    local rows = {}
    for i, sample in ipairs(samples) do
      rows[i] = value_of(sample, field)
      if o.pad[field] then rows[i] = filled(rows[i], length, o.pad[field]) end
    end
    local dtype = o.dtypes[field] or orrery.type(first) == "HostTensor" and first.dtype or nil
    batch[field] = orrery.tensor(rows, dtype)
  end
  return batch
end

-- The shortest of the lists that wait for more samples, and none where there is none.
local function shortest(waiting)
  local least
  for length in pairs(waiting) do least = least and math.min(least, length) or length end
  if not least then return nil end
  local list = waiting[least]
  waiting[least] = nil
  return list
end

-- Lists of `size` samples, at the end of the samples also shorter ones; with lengths, of samples that are filled up to
-- one length.
local function grouped(next_sample, size, o)
  local waiting = {} -- length -> samples
  return function()
    while true do
      local sample = next_sample()
      if not sample then return shortest(waiting) end
      local length = #o.lengths > 0 and length_of(sample, o.pad, o.lengths) or 0
      local list = waiting[length] or {}
      waiting[length] = list
      list[#list + 1] = sample
      if #list == size then
        waiting[length] = nil
        return list
      end
    end
  end
end

local Stream = { __name = "Stream", __metatable = false }
local methods = {}

function Stream.__index(_, name)
  if methods[name] then return methods[name] end
  orrery.fail(("a stream has no '%s': it has batches"):format(tostring(name)))
end

--- Stream:batches(options)
--- for step, batch in stream:batches{size = 32} do. Fields are HostTensors.
---@param options table
---@option size integer required; samples in the whole batch, over all ranks
---@option steps number=math.huge last step; goes on for ever if left out
---@option from integer=1 first step; run.steps + 1 continues a run, after the samples before it are made again
---@return function
function methods.batches(stream, options)
  local o = orrery.options("batches", options, { size = 0, steps = math.huge, from = 1 })
  for _, name in ipairs { "size", "from" } do
    if o[name] < 1 then orrery.fail(("batches: %s is %d, expected at least 1"):format(name, o[name])) end
  end
  local given = settings[stream]
  local next_sample = endless(given.make)
  if given.shuffle > 0 then next_sample = shuffled(next_sample, given.shuffle, given.seed) end
  local next_group = grouped(next_sample, o.size, given)
  for _ = 2, o.from do next_group() end
  local step = o.from - 1
  return function()
    step = step + 1
    if step > o.steps then return nil end
    return step, stacked(next_group(), given)
  end
end

-- For evaluate.lua: batches with each sample once and in order, `limit` of them at most.
function M.pass(stream, size, limit)
  local given, made = settings[stream], 0
  local next_sample = once(given.make)
  local next_group = grouped(function()
    made = made + 1
    return made <= limit and next_sample() or nil
  end, size, given)
  return function()
    local group = next_group()
    return group and stacked(group, given)
  end
end

methods.batches = require "orrery.checked"("Stream", "batches", methods.batches, "stream")

local function check_lengths(o)
  for i, length in ipairs(o.lengths) do
    if math.type(length) ~= "integer" or length < 1 or i > 1 and length <= o.lengths[i - 1] then
      orrery.fail(("data.from: lengths has %s: give rising whole numbers"):format(tostring(length)))
    end
  end
  if #o.lengths > 0 and next(o.pad) == nil then
    orrery.fail "data.from: lengths needs pad, which says what fields are filled up with: pad = {x = 0}"
  end
end

define([[data.from(make: function, options?) -> orrery.Stream; A stream of samples: `make()` is called where it begins
    and again at its end, and returns a function whose results are samples {field = number, list or HostTensor}, and nil
    at the end.
    @option dtypes: table = {}; of fields, {y = 'i32'}; integers give i64 else, other numbers f32
    @option shuffle: integer = 0; how many samples wait, out of which the next is drawn at random, 0 for none
    @option seed: integer = 1; of that
    @option pad: table = {}; what lists of different lengths are filled up with, by field: {x = 0, y = -1}
    @option lengths: table = {}; with pad: a batch has samples that are filled up to the same one of these lengths, not
    to the longest of the batch]],
  function(make, o)
    if o.shuffle < 0 then orrery.fail(("data.from: shuffle is %d, expected at least 0"):format(o.shuffle)) end
    check_lengths(o)
    local stream = setmetatable({}, Stream)
    o.make = make
    settings[stream] = o
    return stream
  end)

return M
