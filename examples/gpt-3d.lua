-- SPDX-License-Identifier: Apache-2.0
--
-- Three ways to cut one model, stacked: pipeline x tensor x data, with recompute.
--
--   orrery run -n 8 examples/gpt-3d.lua                       # 2 x 2 x 2 ranks of this machine
--   orrery plan -n 3072 examples/gpt-3d.lua config=1t         # a trillion parameters, 64 x 8 x 6
--
-- config=1t is the largest configuration of Narayanan et al., "Efficient Large-Scale Language Model
-- Training on GPU Clusters Using Megatron-LM", SC 2021.
local orrery = require "orrery"
local strategy = orrery.strategy
local example = require "models.train"

local args = example.arguments { config = "small", pipe = 2, tensor = 2, schedule = "1f1b" }
if args.config == "1t" then
  args.layers, args.dim, args.heads, args.ctx, args.dropout = 128, 25600, 160, 2048, 0
  args.batch, args.microbatches, args.pipe, args.tensor = 3072, 3072, 64, 8
  args.vocab = 51200
end
example.train(args, {
  strategy.pipeline { size = args.pipe, schedule = args.schedule },
  strategy.tensor { size = args.tensor },
  strategy.data {},
  strategy.recompute {},
})
