-- SPDX-License-Identifier: Apache-2.0
--
--- optim.plateau(options)
--- A warm-up, then a rate that falls when a value that the script hands over, such as the loss of an evaluation, has not
--- become better for some time: rate = optim.plateau { peak = 0.1 }, and rate:step(value) after each evaluation. Where it
--- stands is a buffer and part of checkpoints, which tell several of them apart by their `name`.
---@param options table
---@option peak number the rate after the warm-up
---@option warmup integer=0 steps in which the rate grows from 0
---@option mode string='min' whether smaller values are better, or larger ones: max
---@option factor number=0.1 what the rate is multiplied by
---@option patience integer=10 values in a row that may be no better; the rate falls with the next one
---@option threshold number=1e-4 how much better a value must be to count
---@option threshold_mode string='rel' as a part of the best value; abs: as a difference
---@option cooldown integer=0 values after the rate has fallen that do not count
---@option floor number=0 the least rate
---@option eps number=1e-8 the rate stays where it would fall by no more than this
---@option name string='optim.plateau' of its buffer
---@return orrery.Plateau
local _, orrery = ...

local Plateau = { __name = "Plateau", __metatable = false }
Plateau.__index = Plateau

-- What the buffer holds.
local RATE, BEST, BAD, COOLDOWN = 1, 2, 3, 4

-- The rate of a step of the run, from 1.
function Plateau:__call(step)
  local rate = self.state:read():tolist()[RATE]
  return step <= self.options.warmup and rate * step / self.options.warmup or rate
end

local function is_better(o, value, best)
  local sign = o.mode == "min" and -1 or 1
  local bound = o.threshold_mode == "rel" and best * (1 + sign * o.threshold) or best + sign * o.threshold
  return sign * value > sign * bound
end

--- Plateau:step(value)
--- Hands over the next value, the same on all ranks, and returns the rate from now on.
---@param value number
---@return number
function Plateau:step(value)
  local o, at = self.options, self.state:read():tolist()
  local better = is_better(o, value, at[BEST])
  at[BEST] = better and value or at[BEST]
  at[BAD] = better and 0 or at[BAD] + 1
  if at[COOLDOWN] > 0 then at[COOLDOWN], at[BAD] = at[COOLDOWN] - 1, 0 end
  if at[BAD] > o.patience then
    local rate = math.max(at[RATE] * o.factor, o.floor)
    if at[RATE] - rate > o.eps then at[RATE] = rate end
    at[COOLDOWN], at[BAD] = o.cooldown, 0
  end
  self.state:write(orrery.tensor(at, "f64"))
  return at[RATE]
end

Plateau.step = require "orrery.checked"("Plateau", "step", Plateau.step, "optim/plateau")

local defaults = {
  peak = false, warmup = 0, mode = "min", factor = 0.1, patience = 10, threshold = 1e-4, threshold_mode = "rel", cooldown = 0,
  floor = 0, eps = 1e-8, name = "optim.plateau",
}

local function check(o)
  if not o.peak then orrery.fail "plateau: peak is missing: the rate after the warm-up" end
  if not (o.factor >= 0 and o.factor < 1) then
    orrery.fail(("plateau: factor = %g, expected at least 0 and less than 1"):format(o.factor))
  end
  for option, words in pairs { mode = { "min", "max" }, threshold_mode = { "rel", "abs" } } do
    if o[option] ~= words[1] and o[option] ~= words[2] then
      orrery.fail(("plateau: %s = %q: give %q or %q"):format(option, o[option], words[1], words[2]))
    end
  end
end

return function(given)
  local o = orrery.options("plateau", given, defaults)
  check(o)
  local begin = { o.peak + 0.0, o.mode == "min" and math.huge or -math.huge, 0.0, 0.0 }
  local state = orrery.buffer({ #begin }, { dtype = "f64", name = o.name, init = orrery.tensor(begin, "f64") })
  return setmetatable({ options = o, state = state }, Plateau)
end
