-- MPT as it was timed (more_rows.py), a GPT-2 by its layers: f32 parameters in pieces that are gathered in bf16, by
-- blocks, for each microbatch; blocks that are computed again in backward.
local orrery = require "orrery"
local strategy = orrery.strategy
local gpt2 = require "models.gpt2"
local a = orrery.args {
  layers = 32, dim = 4096, heads = 32, ctx = 2048, vocab = 50368,
  batch = 96, microbatch = 6, recompute = true, several = true,
  each = true,
}

local stack = { strategy.data {}, strategy.zero { stage = 3, each = a.several and a.each } }
if a.recompute then stack[#stack + 1] = strategy.recompute { path = "blocks.*" } end
stack[#stack + 1] = strategy.precision { compute = "bf16" }
if a.several then stack[#stack + 1] = strategy.accumulate {} end

local shape = { vocab = a.vocab, positions = a.ctx, dim = a.dim, heads = a.heads, layers = a.layers }
require "one_step"(gpt2.model(shape), a, stack)
