-- SPDX-License-Identifier: Apache-2.0
-- What a search learns from layouts that it has planned, or that were refused.
local bounds = require "orrery.search.bounds"

local function layout(more)
  local l = { pipe = 1, data = 1, tensor = 1, context = 1, each = 1, zero = 0, recompute = false }
  for name, value in pairs(more or {}) do l[name] = value end
  return l
end
local function near(got, expected) assert(math.abs(got / expected - 1) < 1e-9, ("%g, not %g"):format(got, expected)) end

-- One that was planned, one like it but for the tensor ranks, and one that shares no choice with it.
local correction = bounds.correction()
local planned, alike = layout(), layout { tensor = 2 }
local other = layout { pipe = 2, tensor = 2, context = 2, each = 2, zero = 1, recompute = true, schedule = "1f1b" }
near(correction:apply(other, 10), 10)
correction:learn(planned, 10, 40)
near(correction:apply(planned, 10), 40)
near(correction:apply(other, 10), 20)
local between = correction:apply(alike, 10)
assert(between > 20 and between < 40, between)

local refusals = bounds.refusals()
refusals:note(layout { pipe = 8, schedule = "interleaved", chunks = 4, tensor = 2 }, true)
refusals:note(layout { tensor = 4 }, false)
assert(refusals:penalty(layout { pipe = 16, schedule = "zbv" }) == 4, "as many chunks")
assert(refusals:penalty(layout { pipe = 64, schedule = "1f1b" }) == 4, "more stages")
assert(refusals:penalty(layout { pipe = 8, schedule = "interleaved", chunks = 2 }) == 1, "fewer chunks")
assert(refusals:penalty(layout { tensor = 2 }) > 1, "refused, and never planned")
refusals:note(layout { tensor = 2 }, false)
assert(refusals:penalty(layout { tensor = 2 }) == 1, "planned since then")
refusals:note(layout { pipe = 32, schedule = "1f1b" }, false)
assert(refusals:penalty(layout { pipe = 16, schedule = "zbv" }) == 1, "as many chunks were planned since then")
assert(refusals:penalty(layout { pipe = 64, schedule = "1f1b" }) == 4, "more stages")
