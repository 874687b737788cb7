-- SPDX-License-Identifier: Apache-2.0
--
--- optim.cosine_restarts(options)
--- A warm-up, then half a cosine from the peak towards the floor, over and over again.
---@param options table
---@option peak number the rate after the warm-up
---@option warmup integer=0 steps in which the rate grows from 0
---@option period integer steps from the peak until the rate is there again
---@option factor integer=1 from one period to the next
---@option floor number=0 where a period would end with its next step
---@return orrery.Schedule

-- Loshchilov and Hutter, "SGDR", 2017 (arXiv:1608.03983).
local _, orrery = ...

local options = { peak = false, warmup = 0, period = false, factor = 1, floor = 0 }

local function rate(_, o, n)
  local period = o.period
  if o.factor == 1 then n = n % period end
  while n >= period do
    n, period = n - period, period * o.factor
  end
  return o.floor + (o.peak - o.floor) * 0.5 * (1 + math.cos(math.pi * n / period))
end

return orrery.optim.schedule("cosine_restarts", options, rate, function(o)
  for _, name in ipairs { "period", "factor" } do
    if o[name] < 1 then orrery.fail(("cosine_restarts: %s = %g, expected at least 1"):format(name, o[name])) end
  end
end)
