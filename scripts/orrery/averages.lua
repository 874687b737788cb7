-- SPDX-License-Identifier: Apache-2.0
--
-- Averages of models (nn.averaged), which optimizers update after the parameters that they train (optim/define.lua).
local _, orrery = ...
local any_next = require "orrery.globals".next
local M = { made = 0 }

-- average -> {number, o, pairs = {{from, to, count}, ...}, by_from = pairs by identity, buffers = {{from, to}, ...}}
local live = setmetatable({}, { __mode = "k" })

function M.add(average, entry)
  M.made = M.made + 1
  entry.number, entry.by_from = M.made, {}
  for _, pair in ipairs(entry.pairs) do entry.by_from[pair.from:identity()] = pair end
  live[average] = entry
end

-- The averages of any of these parameters, in the order in which they were made.
local function of(params)
  local found, known = {}, {}
  for _, parameter in ipairs(params) do
    for _, entry in any_next, live do
      if entry.by_from[parameter:identity()] and not known[entry] then
        known[entry], found[#found + 1] = true, entry
      end
    end
  end
  table.sort(found, function(a, b) return a.number < b.number end)
  return found
end

local function wide(x) return x.dtype:find "16" and x:cast "f32" or x end

-- Traces the update of a pair by the new value of its parameter.
local function follow(pair, new, o)
  local steps = pair.count + 1
  pair.count:update(steps)
  local now, next_one = wide(pair.to), wide(new)
  local since = steps - o.from
  local apart = since % o.every
  local rate = o.decay and 1 - o.decay
  if not rate then -- one of as many values as the average has had with this one
    rate = o.every / (since - apart + o.every):cast(now.dtype)
  end
  local value = since:eq(0):select(next_one, now + (next_one - now) * rate)
  if o.from > 1 or o.every > 1 then value = since:ge(0):logical_and(apart:eq(0)):select(value, now) end
  pair.to:update(value.dtype == pair.to.dtype and value or value:cast(pair.to.dtype))
end

-- Whether this parameter is the first one of an average that is trained.
local function leads(entry, parameter, params)
  for _, each in ipairs(params) do
    if not each.frozen and entry.by_from[each:identity()] then return each == parameter end
  end
end

-- Traces what the new value of a parameter, of these that an optimizer has, changes in averages. With the first one of an
-- average come those that are not trained, and its buffers.
function M.follow(parameter, new, params)
  local trained
  for _, entry in ipairs(of { parameter }) do
    follow(entry.by_from[parameter:identity()], new, entry.o)
    if leads(entry, parameter, params) then
      if not trained then
        trained = {}
        for _, each in ipairs(params) do trained[each:identity()] = not each.frozen end
      end
      for _, pair in ipairs(entry.pairs) do
        if not trained[pair.from:identity()] then follow(pair, pair.from, entry.o) end
      end
      for _, pair in ipairs(entry.buffers) do pair.to:update(pair.from:updated()) end
    end
  end
end

-- Updates the averages of parameters that a loop has changed otherwise; `loop` keeps what is compiled for it.
function M.step(params, loop)
  local count = M.count(params)
  if count == 0 then return end
  if loop.averages ~= count then
    loop.averages, loop.follow = count, orrery.engine.func(function()
      for _, parameter in ipairs(params) do M.follow(parameter, parameter, params) end
    end)
  end
  loop.follow:run {}
end

-- How many averages an optimizer of these parameters updates.
function M.count(params) return M.made > 0 and #of(params) or 0 end

return M
