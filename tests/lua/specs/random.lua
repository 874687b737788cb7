-- SPDX-License-Identifier: Apache-2.0
-- orrery.seed makes math.random repeat.
local orrery = require "orrery"
orrery.seed(5)
local a, b = math.random(), math.random(100)
orrery.seed(5)
assert(math.random() == a and math.random(100) == b)
