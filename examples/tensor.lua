-- SPDX-License-Identifier: Apache-2.0
--
-- Tensor parallelism: linear layers are cut over the ranks, attention by heads.
--
--   orrery run -n 2 examples/tensor.lua
--   orrery run -n 4 examples/tensor.lua size=2                # two ranks a layer, twice
local strategy = require "orrery".strategy
local example = require "models.train"

local args = example.arguments { size = 0, sequence = false }
example.train(args, {
  strategy.tensor { size = args.size, sequence = args.sequence },
  strategy.data {},
})
