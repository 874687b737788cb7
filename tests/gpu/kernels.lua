-- SPDX-License-Identifier: Apache-2.0
--
-- A few steps of GPT-2 in bf16, for --profile; kernels.py makes a table of it.
local orrery = require "orrery"
local models = require "golden.models"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  steps = 6, batch = 16, ctx = 1024, vocab = 50304, dim = 768, heads = 12, layers = 12,
}
orrery.seed(1)

local model = models.gpt {
  vocab = args.vocab, positions = args.ctx, dim = args.dim, heads = args.heads, layers = args.layers,
}
local run = orrery.compile(function(batch) return nn.cross_entropy(model(batch.x), batch.y) end, {
  params = model, strategy = { strategy.data {}, strategy.precision { compute = "bf16" } },
  optimizer = optim.adamw { lr = 3e-4, decay = 0.1, groups = { { match = models.undecayed, decay = 0 } } },
})

local rows = {}
for i = 1, args.batch do
  rows[i] = {}
  for j = 1, args.ctx do rows[i][j] = math.random(0, args.vocab - 1) end
end
local tokens = orrery.tensor(rows, "i32")
local data = orrery.data.arrays { x = tokens, y = tokens }
for _, batch in data:batches { size = args.batch, steps = args.steps } do run:step(batch):mean() end
