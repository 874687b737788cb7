-- SPDX-License-Identifier: Apache-2.0
--
-- Two encoders that learn which of their inputs belong together, as CLIP does (Radford et al., 2021): each sample's own
-- pair is told from all pairs of the batch, on whatever ranks those are. Embeddings are normalised with the mean and
-- variance of the whole batch. Any number of ranks gives the same digest.
--
--   orrery run -n 4 examples/contrastive.lua
local orrery = require "orrery"
local nn, optim, strategy = orrery.nn, orrery.optim, orrery.strategy
local args = orrery.args { steps = 300, batch = 48, width = 16, lr = 0.01, microbatches = 12, zero = 0, seed = 1 }
orrery.seed(args.seed)

-- Two views of the same hidden numbers: angles seen by their sines and cosines, and by shifted ones.
local x, y = {}, {}
for i = 1, 960 do
  local a, b = math.random() * 2 * math.pi, math.random() * 2 * math.pi
  x[i] = { math.cos(a), math.sin(a), math.cos(b), math.sin(b) }
  y[i] = { math.sin(a + b), math.cos(a - b), math.sin(a), math.cos(b + 1) }
end
local data = orrery.data.arrays { x = orrery.tensor(x, "f32"), y = orrery.tensor(y, "f32") }

local function encoder()
  return nn.sequential { nn.linear(4, 64), nn.tanh, nn.linear(64, args.width) }
end
local model = { left = encoder(), right = encoder(), warmth = orrery.parameter({}, { init = 0 }) }

-- By the statistics of the whole batch, and then to length 1.
local function normalised(z)
  local away = z - z:mean(1)
  z = away * ((away * away):mean(1) + 1e-3):rsqrt()
  return z * (z:sumsq(2, { keep = true }) + 1e-6):rsqrt()
end

-- The loss of finding each row of `own` in the whole batch's `others`, and how often it is found.
local function found(own, others)
  local logits = own:matmul(others:all_gather("batch"), { transpose_b = true }) * (model.warmth + 1):exp()
  local index = orrery.sample_index()
  return nn.cross_entropy(logits, index), logits:argmax():eq(index):cast("f32"):mean()
end

local function loss(batch)
  local left, right = normalised(model.left(batch.x)), normalised(model.right(batch.y))
  local there, found_there = found(left, right)
  local back, found_back = found(right, left)
  return (there + back) * 0.5, { found = (found_there + found_back) * 0.5 }
end

local stack = { strategy.data {} }
if args.zero > 0 then stack[2] = strategy.zero { stage = args.zero } end
local run = orrery.compile(loss, {
  params = model, microbatches = args.microbatches, strategy = stack, optimizer = optim.adamw { lr = args.lr },
})
run:fit { data = data, size = args.batch, steps = args.steps, log = 50 }
local used = run:counters()
orrery.log("rank 0: %d bytes sent as predicted, %d counted", used.predicted_bytes_sent, used.bytes_sent)
orrery.log("digest %s", orrery.digest(model))
