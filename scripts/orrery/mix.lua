-- SPDX-License-Identifier: Apache-2.0
--
-- data.concat, and data.mix: an epoch of that is as long as it takes to see every sample of every part; smaller parts are seen again meanwhile.
local _, orrery = ...
local engine = orrery.engine
local define = require "orrery.define"

local most = 2 ^ 53

local function check_parts(name, parts)
  for k, part in ipairs(parts) do
    if orrery.type(part) ~= "Dataset" then
      orrery.fail(("%s: part %d is %s, expected a dataset"):format(name, k, engine.describe(part)))
    end
  end
end

local function check(parts, weights)
  check_parts("mix", parts)
  if #parts == 0 or #parts ~= #weights then
    orrery.fail(("mix: %d parts and %d weights: give one weight for each part"):format(#parts, #weights))
  end
  for k, weight in ipairs(weights) do
    if type(weight) ~= "number" then
      orrery.fail(("mix: a weight is %s, expected a number"):format(engine.describe(weight)))
    elseif not (weight > 0 and weight < math.huge) then
      orrery.fail(("mix: weight %d is %.14g: every weight is a number above 0"):format(k, weight))
    end
  end
end

-- The nearest whole number.
local function rounded(x)
  local below = math.floor(x)
  return x - below >= 0.5 and below + 1 or below
end

define([[data.mix(parts: list, weights: list) -> Dataset; Several datasets of the same fields, each with its share of
    the samples. An epoch is as long as it takes to see all of every part.]],
  function(parts, weights)
    check(parts, weights)
    local longest, all, lengths = 0, 0, {} -- longest: the samples of a part of weight 1
    for k, part in ipairs(parts) do longest = math.max(longest, engine.samples(part) / weights[k]) end
    for k, part in ipairs(parts) do
      local length = math.max(1, rounded(weights[k] * longest))
      all = all + length
      if all > most then
        orrery.fail(("mix: weight %d is %.14g: an epoch would have more than 2^53 samples"):format(k, weights[k]))
      end
      lengths[k] = math.max(engine.samples(part), length)
    end
    return engine.mix("mix", parts, lengths)
  end)

define([[data.concat(parts: list) -> Dataset; Several datasets of the same fields, one after another.]], function(parts)
  check_parts("concat", parts)
  if #parts == 0 then orrery.fail "concat: the list is empty; give at least one dataset" end
  local lengths = {}
  for k, part in ipairs(parts) do lengths[k] = engine.samples(part) end
  return engine.mix("concat", parts, lengths)
end)
