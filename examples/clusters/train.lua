-- SPDX-License-Identifier: Apache-2.0
--
-- A training that may be stopped at any time and goes on from its newest checkpoint, on as many ranks as there are
-- then: what the recipes beside it start. It learns which character follows another.
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args {
  training = { "", help = "folder of .txt files; left out: this program's own sources" },
  checkpoints = { "", help = "folder that all ranks see; left out: the training cannot be continued" },
  model = { "", help = "folder for model.safetensors" },
  every = { 20, help = "steps between two checkpoints" },
  steps = { 200, help = "training steps" },
  microbatches = { 8, help = "pieces of a batch, which the bits depend on" },
  batch = 64, dim = 32, lr = 0.01,
}
orrery.seed(1)

local source = args.training == "" and orrery.sources() or orrery.data.files(args.training, { ".txt" })
local text = orrery.data.text(source, { ctx = 2 })
local model = nn.sequential {
  nn.embedding(text.vocab, args.dim), nn.linear(args.dim, 4 * args.dim), nn.relu, nn.linear(4 * args.dim, text.vocab),
}
local run = orrery.compile(function(batch) return nn.cross_entropy(model(batch.x), batch.y) end, {
  params = model, optimizer = optim.adamw { lr = args.lr }, microbatches = args.microbatches,
  strategy = strategy.data {},
})
if args.checkpoints ~= "" then run:checkpoints { dir = args.checkpoints, every = args.every } end
if run.steps > 0 then orrery.log("continuing after step %d", run.steps) end
for step, batch in text:batches { size = args.batch, steps = args.steps, from = run.steps + 1 } do
  local loss = run:step(batch)
  if step % args.every == 0 then orrery.log("step %d loss %.4f", step, loss:mean()) end
end
if args.model ~= "" then model:save_weights(args.model .. "/model.safetensors") end
orrery.log("digest %s", orrery.digest(model))
