-- SPDX-License-Identifier: Apache-2.0
--
-- What many steps of a plan take: hours of all ranks, energy and money where the machine file says what a rank takes.
local _, orrery = ...

local M = {}

local function grouped(number)
  if number < 1e4 then return ("%.4g"):format(number) end
  local digits = ("%.0f"):format(number)
  return (digits:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", ""))
end

function M.long(seconds)
  if seconds < 3600 then return ("%.3g minutes"):format(seconds / 60) end
  if seconds < 48 * 3600 then return ("%.3g hours"):format(seconds / 3600) end
  return ("%.3g days"):format(seconds / 86400)
end

-- How many steps are asked for, and in which words. `o`: the command line's options.
function M.asked(step, o)
  if o.tokens > 0 then
    if not step.tokens then
      orrery.engine.fail_usage("--tokens: a batch of this script has no field of integers [samples, positions], "
        .. "so that its tokens are not known; give --steps")
    end
    return math.ceil(o.tokens / step.tokens), ("%.4g tokens, "):format(o.tokens)
  end
  return o.steps > 0 and math.ceil(o.steps) or 1000, ""
end

function M.text(step, o)
  local steps, what = M.asked(step, o)
  local seconds, figures = steps * step.step_seconds, step.machine_says and step.machine_says.figures or {}
  local hours = seconds * step.ranks / 3600
  local text = ("%s%s steps: %s, %s rank-hours"):format(what, grouped(steps), M.long(seconds), grouped(hours))
  if figures.watts then text = ("%s, %.4g MWh at most"):format(text, hours * figures.watts * 1e-6) end
  if figures.price_per_hour then text = ("%s, a price of %s"):format(text, grouped(hours * figures.price_per_hour)) end
  return text
end

return M
