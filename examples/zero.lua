-- SPDX-License-Identifier: Apache-2.0
--
-- ZeRO: data parallelism in which every rank holds a piece of the optimizer's state, of the gradients
-- or of the parameters as well. The same bits as on one process.
--
--   orrery run -n 2 examples/zero.lua stage=3
--   orrery run -n 4 examples/zero.lua stage=3 group=2         # pieces in pairs, pairs replicated
--   orrery run -n 2 examples/zero.lua offload=disk            # and kept on disk between uses
local strategy = require "orrery".strategy
local example = require "models.train"

local args = example.arguments { stage = 1, group = 0, offload = "none" }
example.train(args, {
  strategy.data {},
  strategy.zero { stage = args.stage, group = args.group, offload = args.offload },
})
