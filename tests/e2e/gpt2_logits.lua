-- SPDX-License-Identifier: Apache-2.0
--
-- The logits of GPT-2 with the weights that transformers have saved; what is saved again must be what was loaded.
local orrery = require "orrery"
local gpt2 = require "models.gpt2"
local args = orrery.args { weights = "", tokens = "", logits = "", save = "" }
local config = { vocab = 61, positions = 24, dim = 16, heads = 2, layers = 2 }
local model, other = gpt2.model(config), gpt2.model(config)
model:load_weights(args.weights, { map = gpt2.from_transformers })
orrery.func(function(ids) return model(ids) end)(orrery.load(args.tokens)):save(args.logits)
model:save_weights(args.save)
other:load_weights(args.save)
assert(orrery.digest(other) == orrery.digest(model))
