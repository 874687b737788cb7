-- SPDX-License-Identifier: Apache-2.0
--
-- Every rank trains its own copy of the model on its share of the batch; every few steps the copies are
-- brought together: averaged, or as strategy = diloco, easgd or gossip does it.
--
--   orrery run -n 2 examples/apart.lua every=4
--   orrery run -n 2 examples/apart.lua strategy=diloco every=10
local strategy = require "orrery".strategy
local example = require "models.train"

local args = example.arguments { strategy = "average", every = 4 }
example.train(args, { strategy[args.strategy] { every = args.every } })
