-- SPDX-License-Identifier: Apache-2.0
--
-- Steps of a GPT in 3-D parallelism on `timed` kernels; rank 0 prints the milliseconds of each.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local GPT = require "models.gpt"
local args = orrery.args {
  pipe = 2, tensor = 2, schedule = "interleaved", microbatches = 8, steps = 6, batch = 16, ctx = 64, dim = 256, layers = 8,
}

local model = GPT { vocab = 512, ctx = args.ctx, dim = args.dim, heads = 4, layers = args.layers, dropout = 0 }
local run = orrery.compile(function(b) return nn.cross_entropy(model(b.x), b.y) end, {
  params = model, microbatches = args.microbatches, optimizer = optim.sgd { lr = 0 },
  strategy = {
    strategy.pipeline { size = args.pipe, schedule = args.schedule },
    strategy.tensor { size = args.tensor },
    strategy.data {},
  },
})
local ids = orrery.func(function() return orrery.zeros({ args.batch, args.ctx }, "i32") end)()
for _, batch in orrery.data.arrays({ x = ids, y = ids }):batches { size = args.batch, steps = args.steps } do
  orrery.world:barrier()
  local start = orrery.time()
  run:step(batch):mean()
  orrery.world:barrier()
  orrery.log("ms %.3f", (orrery.time() - start) * 1000)
end
