-- SPDX-License-Identifier: Apache-2.0
--
--- optim.one_cycle(options)
--- From peak / start up to the peak in the first part of the steps, then down to peak / start / final at the last one.
---@param options table
---@option peak number the largest rate
---@option steps integer the last step
---@option up number=0.3 the part of the steps in which the rate grows
---@option start number=25 what the first rate is the peak's part of
---@option final number=1e4 what the last rate is the first one's part of
---@option phases integer=2 3: down to the first rate in as many steps as up, and to the last rate in the others
---@option shape string='cos' how rates change within a phase: cos or linear
---@return orrery.Schedule

-- Smith and Topin, 2017 (arXiv:1708.07120).
local _, orrery = ...

local options = { peak = false, steps = false, up = 0.3, start = 25, final = 1e4, phases = 2, shape = "cos" }

local between = {
  cos = function(first, last, t) return last + (first - last) * 0.5 * (1 + math.cos(math.pi * t)) end,
  linear = function(first, last, t) return first + (last - first) * t end,
}

-- The ends of the phases, counted in steps from 0, and the rates there.
local function phases_of(o)
  local first = o.peak / o.start
  local top, last = o.up * o.steps - 1, o.steps - 1
  if o.phases == 2 then return { 0, top, last }, { first, o.peak, first / o.final } end
  return { 0, top, 2 * top, last }, { first, o.peak, first, first / o.final }
end

local function rate(_, o, n)
  local ends, rates = phases_of(o)
  n = math.min(n, o.steps - 1)
  for i = 2, #ends do
    if n <= ends[i] then
      return between[o.shape](rates[i - 1], rates[i], (n - ends[i - 1]) / (ends[i] - ends[i - 1]))
    end
  end
end

return orrery.optim.schedule("one_cycle", options, rate, function(o)
  if not between[o.shape] then
    orrery.fail(("one_cycle: shape = %q: give \"cos\" or \"linear\""):format(tostring(o.shape)))
  elseif o.phases ~= 2 and o.phases ~= 3 then
    orrery.fail(("one_cycle: phases = %g: give 2 or 3"):format(o.phases))
  end
  local most = o.phases == 2 and 1 or 0.5
  if not (o.up * o.steps > 1 and o.up < most) then
    orrery.fail(("one_cycle: up = %g of %g steps, expected more than one step and less than %g of them"):format(
      o.up, o.steps, most))
  elseif not (o.start > 0 and o.final > 0) then
    orrery.fail(("one_cycle: start = %g, final = %g, expected numbers above 0"):format(o.start, o.final))
  end
end)
