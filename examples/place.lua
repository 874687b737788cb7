-- SPDX-License-Identifier: Apache-2.0
--
-- Layers placed by hand: the first half of the model on one rank, the second on another.
--
--   orrery run -n 2 examples/place.lua
local strategy = require "orrery".strategy
local example = require "models.train"

example.train(example.arguments(), {
  strategy.place { modules = { { "tok", "pos", "drop", "blocks.1-2" }, { "blocks.3-4", "norm", "head" } } },
})
