-- SPDX-License-Identifier: Apache-2.0
--
-- Pipeline parallelism: the layers are dealt to stages, microbatches flow through them.
--
--   orrery run -n 4 examples/pipeline.lua schedule=zb1
--   orrery run -n 4 examples/pipeline.lua size=2              # two pipelines of two stages
--   orrery plan -n 4 --svg schedule.svg examples/pipeline.lua
local strategy = require "orrery".strategy
local example = require "models.train"

local args = example.arguments { schedule = "1f1b", size = 0 }
example.train(args, {
  strategy.pipeline { schedule = args.schedule, size = args.size },
  strategy.data {},
})
