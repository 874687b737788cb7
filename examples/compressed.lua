-- SPDX-License-Identifier: Apache-2.0
--
-- Gradients that travel as less than their sum: the largest elements (topk), factors of low rank (powersgd),
-- 8 bits or 1 (quantized); or combined by what they have in common (adasum).
--
--   orrery run -n 2 examples/compressed.lua
--   orrery run -n 2 examples/compressed.lua strategy=powersgd
local strategy = require "orrery".strategy
local example = require "models.train"

local args = example.arguments { strategy = "topk" }
example.train(args, { strategy[args.strategy] {} })
