-- SPDX-License-Identifier: Apache-2.0
--
-- The logits of GPT-2 with the weights that transformers have saved; what is saved again must be what was loaded. With
-- `zero`, after some steps of training whose states lie in pieces.
local orrery = require "orrery"
local gpt2 = require "models.gpt2"
local args = orrery.args { weights = "", tokens = "", logits = "", save = "", zero = 0 }
local config = { vocab = 61, positions = 24, dim = 16, heads = 2, layers = 2 }
local model, other = gpt2.model(config), gpt2.model(config)
model:load_weights(args.weights, { map = gpt2.from_transformers })
if args.zero > 0 then
  local strategy = orrery.strategy
  local run = orrery.compile(function(b) return orrery.nn.cross_entropy(model(b.x), b.x) end, {
    params = model, optimizer = orrery.optim.adam { lr = 0.01 }, microbatches = 2,
    strategy = { strategy.data {}, strategy.zero { stage = args.zero } },
  })
  for _, batch in orrery.data.arrays { x = args.tokens }:batches { size = 2, steps = 3 } do run:step(batch) end
end
orrery.func(function(ids) return model(ids) end)(orrery.load(args.tokens)):save(args.logits)
model:save_weights(args.save)
other:load_weights(args.save)
assert(orrery.digest(other) == orrery.digest(model))
