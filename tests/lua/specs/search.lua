-- SPDX-License-Identifier: Apache-2.0
-- What a search learns from layouts that it has planned, or that were refused.
local learning, estimate = require "orrery.search.learn", require "orrery.search.estimate"

local function layout(more)
  local l = { pipe = 1, data = 1, tensor = 1, context = 1, expert = 1, dealt = 1, each = 1, zero = 0, recompute = false }
  for name, value in pairs(more or {}) do l[name] = value end
  return l
end
local function near(got, expected) assert(math.abs(got / expected - 1) < 1e-9, ("%g, not %g"):format(got, expected)) end

-- One that was planned, one like it but for the tensor ranks, and one that shares no choice with it.
local correction = learning.correction(1)
local planned, alike = layout(), layout { tensor = 2 }
local other = layout { pipe = 2, tensor = 2, context = 2, each = 2, expert = 2, zero = 1, recompute = "full", schedule = "1f1b",
  sequence = true, vocab = true, kind = "ring", zero_each = true }
near(correction:apply(other, 10), 10)
correction:learn(planned, 10, 40)
near(correction:apply(planned, 10), 40)
near(correction:apply(other, 10), 20)
local between = correction:apply(alike, 10)
assert(between > 20 and between < 40, between)

local refusals = learning.refusals()
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

-- Two plans that are alike but for zero's stage: what has that stage, and was planned with the other, seems their twin.
local twins = learning.twins()
twins:note(layout { zero = 1 }, { seconds = 2, bytes = 3 })
assert(not twins:is_one(layout { zero = 2 }), "not known yet")
twins:note(layout { zero = 2 }, { seconds = 2, bytes = 3 })
twins:note(layout { zero = 3 }, { seconds = 2, bytes = 2 })
twins:note(layout { tensor = 2, zero = 1 }, { seconds = 1, bytes = 2 })
assert(twins:is_one(layout { tensor = 2, zero = 2 }), "as before")
assert(not twins:is_one(layout { tensor = 2, zero = 3 }), "made a difference")
assert(not twins:is_one(layout { tensor = 4, zero = 2 }), "its twin was not planned")

-- A probe's figures of a stage: 4 elements with a head as large as one more on 2 stages make 3 of 5 the larger, so that
-- it takes 6/5 of its part; 1f1b waits for 1 of 8 microbatches. Parameters of 4 bytes have copies and gradients of 2.
local facts = {
  ranks = 2, samples = 8, elements = 4, elements_share = 0.8, ranks_per_host = 2, inside = 1, between = 1,
  memory_bandwidth = math.huge,
}
local probe = {
  compute_seconds = 5, update_seconds = 1, exchanged_seconds = { data = 7, tensor = 1 }, outside_bytes = 1000,
  kept_bytes = 90, working_bytes = 3, memory = { parameter = 100, state = 200, buckets = 50 },
}
local staged = layout { pipe = 2, each = 8, schedule = "1f1b" }
local seconds, bytes = estimate.refined(staged, facts, probe, 1)
near(seconds, 8 * (6 / 2 * 6 / 5 * (1 + 1 / 8)) + 1 / 2)
near(bytes, (100 + 200 + 50 + 50 + 100 + 2 * (90 - 50)) / 2 * 6 / 5 + 3 + 1000)
