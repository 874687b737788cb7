-- SPDX-License-Identifier: Apache-2.0
--
-- A few steps of GPT-2 in bf16 on random tokens; prints the milliseconds of each but the first three, which
-- compile, launch and record. speed.py and, with --profile, kernels.py read it.
local orrery = require "orrery"
local models = require "golden.models"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  steps = 6, batch = 16, ctx = 1024, vocab = 50304, dim = 768, heads = 12, layers = 12, numerics = { "exact", "fast" },
}
orrery.seed(1)

local model = models.gpt {
  vocab = args.vocab, positions = args.ctx, dim = args.dim, heads = args.heads, layers = args.layers,
}
local run = orrery.compile(function(batch) return nn.cross_entropy(model(batch.x), batch.y) end, {
  params = model, strategy = { strategy.data {}, strategy.precision { compute = "bf16" } }, numerics = args.numerics,
  optimizer = optim.adamw { lr = 3e-4, decay = 0.1, groups = { { match = models.undecayed, decay = 0 } } },
})

local rows = {}
for i = 1, args.batch do
  rows[i] = {}
  for j = 1, args.ctx do rows[i][j] = math.random(0, args.vocab - 1) end
end
local tokens = orrery.tensor(rows, "i32")
local batch = orrery.data.arrays({ x = tokens, y = tokens }):batch(1, { size = args.batch, shuffle = false })
for step = 1, args.steps do
  local began = orrery.time()
  local loss = run:step(batch):mean()
  local ms = (orrery.time() - began) * 1000
  print(("%s %.3f ms, loss %.5f"):format(step > 3 and "step" or "warm-up", ms, loss))
  io.stdout:flush()
end
print(("memory %d MiB"):format(run:counters().arena_bytes >> 20))
