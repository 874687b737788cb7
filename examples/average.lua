-- SPDX-License-Identifier: Apache-2.0
--
-- Model averaging: every rank trains alone on its share of the batch; every few steps they average.
--
--   orrery run -n 2 examples/average.lua every=4
local strategy = require "orrery".strategy
local example = require "models.train"

local args = example.arguments { every = 4 }
example.train(args, { strategy.average { every = args.every } })
