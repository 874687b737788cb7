-- SPDX-License-Identifier: Apache-2.0
local optim = require "orrery".optim
local function near(a, b) assert(math.abs(a - b) < 1e-12, ("%g, expected %g"):format(a, b)) end
local cosine = optim.cosine { peak = 2, warmup = 10, steps = 110, floor = 1 }
near(cosine(1), 0.2)
near(cosine(10), 2)
near(cosine(60), 1.5)
near(cosine(110), 1)
near(cosine(500), 1)
local linear = optim.linear { peak = 4, warmup = 0, steps = 4 }
near(linear(1), 3)
near(linear(4), 0)
near(optim.constant { peak = 3, warmup = 2 }(1), 1.5)
near(optim.constant { peak = 3, warmup = 2 }(9), 3)
