-- SPDX-License-Identifier: Apache-2.0
--
-- Dataset:weighted, an order for batches by weights.
local _, orrery = ...
local define = require "orrery.define"

-- Sums up to each weight, and the last position that has one above 0.
local function summed(weights)
  local sums, sum, last = {}, 0.0, nil
  for k, weight in ipairs(weights) do
    if type(weight) ~= "number" or not (weight >= 0 and weight < math.huge) then
      orrery.fail(("weighted: weight %d is %s, expected a number of 0 or more"):format(k, tostring(weight)))
    end
    sum = sum + weight
    sums[k] = sum
    if weight > 0 then last = k end
  end
  if not last or sum == math.huge then orrery.fail(("weighted: the weights add up to %g"):format(sum)) end
  return sums, last
end

-- The first position whose sum is above `wanted`; `last` if rounding has left none.
local function position_of(sums, last, wanted)
  local low, high = 1, last
  while low < high do
    local middle = (low + high) // 2
    if sums[middle] > wanted then high = middle else low = middle + 1 end
  end
  return low
end

define([[Dataset:weighted(weights: list, options?) -> function; An order for data:batches {order = ...}: samples are
    drawn, each as often as its weight asks for, the same one several times, as torch's WeightedRandomSampler does.
    @option samples?: integer; how many an epoch has; as many as the dataset if left out]],
  function(data, weights, o)
    if #weights ~= #data then
      orrery.fail(("weighted: %d weights and %d samples: give one weight for each sample"):format(#weights, #data))
    end
    local count = o.samples or #data
    if count < 1 then orrery.fail(("weighted: samples is %d, expected at least 1"):format(count)) end
    local sums, last = summed(weights)
    return function(_, random)
      local drawn = {}
      for k = 1, count do drawn[k] = position_of(sums, last, random() * sums[#sums]) end
      return drawn
    end
  end)
